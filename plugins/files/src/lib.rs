//! Files in the directories that the operator granted, and nowhere else.
//!
//! Each tool is a module that takes the granted roots and the arguments. `root` decides what a
//! path means, `walk` goes through trees in a fixed order, `pattern` matches globs.

mod grep;
mod list;
mod pattern;
mod read;
mod root;
mod walk;
mod write;

use cofferdam_plugin::{export, tool};

use root::Roots;

export! {
    tools: [
        tool("read_file", read::DESCRIPTION, |args| read::read(&Roots::granted()?, &args))
            .label("Read file").read_only().idempotent(),
        tool("list_dir", list::DESCRIPTION, |args| list::list(&Roots::granted()?, &args))
            .label("List directory").read_only().idempotent(),
        tool("grep", grep::DESCRIPTION, |args| grep::grep(&Roots::granted()?, &args))
            .label("Search files").read_only().idempotent(),
        tool("write_file", write::DESCRIPTION, |args| write::write(&Roots::granted()?, &args))
            .label("Write file").destructive().lane("files"),
    ],
}
