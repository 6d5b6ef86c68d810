//! Steps on files, as raw calls of `wasi:filesystem`.

use cofferdam_plugin::{Value, json};
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
};
use wasip2::io::streams::StreamError;

type Tried = Result<Value, String>;

fn said(error: ErrorCode) -> String {
    error.name().to_owned()
}

fn done(result: Result<(), ErrorCode>) -> Tried {
    result.map(|()| Value::Null).map_err(said)
}

/// One step. Directories are named by the path under which they are granted.
pub(crate) fn attempt(step: &Value) -> Tried {
    let text = |name: &str| step[name].as_str().unwrap_or_default();
    if text("do") == "dirs" {
        let names = get_directories().into_iter().map(|(_, name)| name);
        return Ok(json!(names.collect::<Vec<_>>()));
    }
    let dir = granted(text("dir"))?;
    let path = text("path");
    let follow = follow(step);
    match text("do") {
        "open" => open(&dir, step),
        "stat" => {
            let stat = dir.stat_at(follow, path).map_err(said)?;
            Ok(json!({ "type": format!("{:?}", stat.type_), "size": stat.size }))
        }
        "readlink" => dir.readlink_at(path).map(Value::from).map_err(said),
        "rename" => done(dir.rename_at(path, &other(step)?, text("to"))),
        "link" => done(dir.link_at(follow, path, &other(step)?, text("to"))),
        "symlink" => done(dir.symlink_at(text("target"), path)),
        "unlink" => done(dir.unlink_file_at(path)),
        "mkdir" => done(dir.create_directory_at(path)),
        "rmdir" => done(dir.remove_directory_at(path)),
        "times" => done(dir.set_times_at(follow, path, NewTimestamp::Now, NewTimestamp::Now)),
        "list" => list(&dir),
        // As many as are wanted, kept open to the end of the call.
        "hoard" => {
            let times = step["times"].as_u64().unwrap_or_default();
            let open = || dir.open_at(follow, path, OpenFlags::empty(), DescriptorFlags::READ);
            let kept: Vec<Descriptor> = (0..times).map_while(|_| open().ok()).collect();
            Ok(json!(kept.len()))
        }
        other => Err(format!("no step `{other}`")),
    }
}

fn granted(name: &str) -> Result<Descriptor, String> {
    let mut found = get_directories().into_iter().filter(|(_, granted)| granted == name);
    found.next().map(|(dir, _)| dir).ok_or_else(|| format!("{name} is not granted"))
}

fn other(step: &Value) -> Result<Descriptor, String> {
    let name = step["to_dir"].as_str().or(step["dir"].as_str());
    granted(name.unwrap_or_default())
}

fn follow(step: &Value) -> PathFlags {
    match step["follow"].as_bool() {
        Some(false) => PathFlags::empty(),
        _ => PathFlags::SYMLINK_FOLLOW,
    }
}

/// Opens a file and does what its other fields say, in a fixed order.
fn open(dir: &Descriptor, step: &Value) -> Tried {
    let on = |name: &str| step[name] == true;
    let text = |name: &str| step[name].as_str();
    let mut how = OpenFlags::empty();
    how.set(OpenFlags::CREATE, on("create"));
    how.set(OpenFlags::EXCLUSIVE, on("exclusive"));
    how.set(OpenFlags::TRUNCATE, on("truncate"));
    how.set(OpenFlags::DIRECTORY, on("directory"));
    let mut flags = DescriptorFlags::empty();
    flags.set(DescriptorFlags::READ, step["read"] != false);
    flags.set(DescriptorFlags::WRITE, on("write"));
    flags.set(DescriptorFlags::MUTATE_DIRECTORY, on("mutate"));
    let file = dir.open_at(follow(step), text("path").unwrap_or_default(), how, flags);
    let file = file.map_err(said)?;
    if let Some(size) = step["size"].as_u64() {
        file.set_size(size).map_err(said)?;
    }
    if on("times") {
        file.set_times(NewTimestamp::Now, NewTimestamp::Now).map_err(said)?;
    }
    let at = step["at"].as_u64().unwrap_or_default();
    if let Some(bytes) = text("put") {
        return Ok(json!({ "written": file.write(bytes.as_bytes(), at).map_err(said)? }));
    }
    if let Some(times) = step["fill"].as_u64() {
        return filled(&file, times, on("append"));
    }
    if let Some(len) = step["zeroes"].as_u64() {
        let stream = file.write_via_stream(at).map_err(said)?;
        stream.blocking_write_zeroes_and_flush(len).map_err(broken)?;
        return Ok(Value::Null);
    }
    if let Some(len) = step["get"].as_u64() {
        let (bytes, end) = file.read(len, at).map_err(said)?;
        return Ok(json!({ "body": String::from_utf8_lossy(&bytes), "end": end }));
    }
    if let Some(len) = step["stream"].as_u64() {
        let stream = file.read_via_stream(at).map_err(said)?;
        let bytes = stream.blocking_read(len).map_err(broken)?;
        return Ok(json!({ "body": String::from_utf8_lossy(&bytes) }));
    }
    if let Some(name) = text("mkdir") {
        return done(file.create_directory_at(name));
    }
    if on("list") {
        return list(&file);
    }
    Ok(Value::Null)
}

/// Writes so many bytes through a stream, and says how many went.
fn filled(file: &Descriptor, bytes: u64, append: bool) -> Tried {
    let stream = match append {
        true => file.append_via_stream(),
        false => file.write_via_stream(0),
    };
    let stream = stream.map_err(said)?;
    let mut written = 0;
    while written < bytes {
        let piece = vec![b'x'; (bytes - written).min(4096) as usize];
        match stream.blocking_write_and_flush(&piece) {
            Ok(()) => written += piece.len() as u64,
            Err(error) => return Err(format!("{} after {written} bytes", broken(error))),
        }
    }
    Ok(json!({ "written": written }))
}

fn list(dir: &Descriptor) -> Tried {
    let stream = dir.read_directory().map_err(said)?;
    let mut names = Vec::new();
    while let Some(entry) = stream.read_directory_entry().map_err(said)? {
        names.push(entry.name);
    }
    names.sort();
    Ok(json!(names))
}

pub(crate) fn broken(error: StreamError) -> String {
    match error {
        StreamError::Closed => "closed".to_owned(),
        StreamError::LastOperationFailed(error) => error.to_debug_string(),
    }
}
