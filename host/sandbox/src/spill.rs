//! Results that are too long for a model, kept whole in files where the operator allows it.
//!
//! A result is on its way to the model, so whatever goes wrong here is a sentence for the receipt
//! and never an error: the result is then cut and nothing is kept.

use crate::text::cut;
use cofferdam_agent::message::{Content, Image};
use serde::Serialize;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where long results of all plugins go.
pub(crate) struct Spill {
    dir: PathBuf,
    /// Bytes that may still be written.
    left: AtomicU64,
    total_mib: u64,
}

/// A long result that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spilled {
    /// The file with its text. Images of the result lie beside it.
    pub path: String,
    /// Bytes of the result that were kept, images included.
    pub bytes: u64,
    /// Whether nothing is missing.
    pub whole: bool,
}

/// One file to write.
struct Part {
    suffix: String,
    bytes: Vec<u8>,
}

/// Files of one name that may lie in the folder: the same call id in many turns.
const NAMESAKES_MAX: u32 = 10_000;
/// Bytes of a call id in a file name.
const ID_BYTES_MAX: usize = 80;

impl Spill {
    /// A folder, made when it is first needed, and how much it may take in all.
    pub(crate) fn new(dir: PathBuf, total_mib: u64) -> Self {
        Self { dir, left: AtomicU64::new(total_mib << 20), total_mib }
    }

    /// Writes a result of one call: its text, and each image in a file of its own, up to a number of
    /// bytes.
    pub(crate) fn write(
        &self,
        plugin: &str,
        call_id: &str,
        content: &[Content],
        bytes_max: usize,
    ) -> Result<Spilled, String> {
        let (parts, whole) = parts(content, bytes_max);
        let bytes: usize = parts.iter().map(|part| part.bytes.len()).sum();
        self.reserve(bytes as u64)?;
        let written = self.write_parts(&format!("{}-{}", plain(plugin), plain(call_id)), &parts);
        match written {
            Ok(path) => Ok(Spilled { path, bytes: bytes as u64, whole }),
            Err(error) => {
                self.left.fetch_add(bytes as u64, Ordering::Relaxed);
                Err(format!("{}: {error}", self.dir.display()))
            }
        }
    }

    fn reserve(&self, bytes: u64) -> Result<(), String> {
        let take = |left: u64| left.checked_sub(bytes);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(_) => Err(format!(
                "{}: it holds {} MiB already (setting spill_total_mib)",
                self.dir.display(),
                self.total_mib
            )),
        }
    }

    /// All or nothing: what was written before an error is removed.
    fn write_parts(&self, stem: &str, parts: &[Part]) -> std::io::Result<String> {
        private_dir().create(&self.dir)?;
        let mut done: Vec<PathBuf> = Vec::new();
        for part in parts {
            let written = create(&self.dir, stem, &part.suffix).and_then(|(mut file, path)| {
                done.push(path);
                file.write_all(&part.bytes)
            });
            if let Err(error) = written {
                for path in done {
                    // What cannot be removed is left; the error is told already.
                    let _ = std::fs::remove_file(path);
                }
                return Err(error);
            }
        }
        Ok(done.first().map(|path| path.display().to_string()).unwrap_or_default())
    }
}

/// The files of a result, the one with the text first, and whether they hold all of it.
fn parts(content: &[Content], bytes_max: usize) -> (Vec<Part>, bool) {
    let mut text = String::new();
    let mut images = Vec::new();
    let mut left = bytes_max;
    let mut whole = true;
    for (at, block) in content.iter().enumerate() {
        if at > 0 {
            text.push('\n');
        }
        match block {
            Content::Text(block) => {
                let kept = cut(block, left);
                whole &= kept.len() == block.len();
                left -= kept.len();
                text.push_str(kept);
            }
            Content::Image(image) if image.data.len() <= left => {
                left -= image.data.len();
                let suffix = format!("-{}.{}", at + 1, extension(image));
                text.push_str(&format!(
                    "[{}, in the file that ends in {suffix}]",
                    image.media_type
                ));
                images.push(Part { suffix, bytes: image.data.to_vec() });
            }
            Content::Image(image) => {
                whole = false;
                text.push_str(&format!("[{}, too large to be kept]", image.media_type));
            }
        }
    }
    images.insert(0, Part { suffix: ".txt".into(), bytes: text.into_bytes() });
    (images, whole)
}

fn extension(image: &Image) -> &'static str {
    match image.media_type.as_str() {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => "bin",
    }
}

/// A part of a file name that means nothing to any file system. Ids come from models.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    cut(name, ID_BYTES_MAX).chars().map(plain).collect()
}

/// A file that was not there before. Nothing that lies in the folder is followed or overwritten.
fn create(dir: &Path, stem: &str, suffix: &str) -> std::io::Result<(File, PathBuf)> {
    for number in 1..=NAMESAKES_MAX {
        let name = match number {
            1 => format!("{stem}{suffix}"),
            more => format!("{stem}~{more}{suffix}"),
        };
        let path = dir.join(name);
        match private_file().open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::Error::other(format!("there are {NAMESAKES_MAX} files of one name")))
}

fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn private_dir() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<Content> {
        vec![Content::Text(text.into())]
    }

    #[test]
    fn names_lead_nowhere_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("deep/er");
        let spill = Spill::new(dir.clone(), 1);
        let first = spill.write("p", "../../etc/pass wd\n\u{202e}", &text("one"), 100);
        let path = first.expect("kept").path;
        assert_eq!(path, dir.join("p-______etc_pass_wd__.txt").display().to_string());
        let second = spill.write("p", "../../etc/pass wd\n\u{202e}", &text("two"), 100);
        let second = second.expect("kept");
        assert!(second.path.ends_with("~2.txt") && second.whole, "{second:?}");
        assert_eq!(std::fs::read_to_string(path).expect("a file"), "one");
        let long = spill.write("p", &"x".repeat(10_000), &text("é"), 1).expect("kept");
        assert_eq!((long.bytes, long.whole), (0, false), "cut on a character boundary");
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_read_them_and_links_are_not_followed() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().expect("a folder");
        let dir = folder.path().join("spill");
        let spill = Spill::new(dir.clone(), 1);
        let path = spill.write("p", "c", &text("x"), 9).expect("kept").path;
        let mode =
            |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(Path::new(&path)), mode(&dir)), (0o600, 0o700));
        let elsewhere = folder.path().join("elsewhere");
        symlink(&elsewhere, dir.join("p-d.txt")).expect("a link");
        spill.write("p", "d", &text("x"), 9).expect("kept under another name");
        assert!(!elsewhere.exists());
    }

    #[test]
    fn images_lie_beside_the_text() {
        let folder = tempfile::tempdir().expect("a folder");
        let spill = Spill::new(folder.path().into(), 1);
        let image = |size| {
            let data = vec![7; size].into();
            Content::Image(Image { media_type: "image/png".into(), data })
        };
        let content = [Content::Text("see".into()), image(5), image(50)];
        let kept = spill.write("p", "c", &content, 20).expect("kept");
        let words = std::fs::read_to_string(&kept.path).expect("a file");
        assert_eq!(
            words,
            "see\n[image/png, in the file that ends in -2.png]\n[image/png, too large to be kept]"
        );
        assert_eq!(std::fs::read(folder.path().join("p-c-2.png")).expect("a file"), [7; 5]);
        assert!(!kept.whole);
    }

    #[test]
    fn what_goes_wrong_is_told_and_gives_back_its_room() {
        let folder = tempfile::tempdir().expect("a folder");
        let in_the_way = folder.path().join("file");
        std::fs::write(&in_the_way, "").expect("written");
        let spill = Spill::new(in_the_way, 1);
        let why = spill.write("p", "c", &text("x"), 9).expect_err("a file is no folder");
        assert!(why.contains("file"), "{why}");
        assert_eq!(spill.left.load(Ordering::Relaxed), 1 << 20);
        let small = Spill::new(folder.path().join("spill"), 1);
        let big = "x".repeat(1 << 20);
        small.write("p", "c", &text(&big), usize::MAX).expect("it fits");
        let why = small.write("p", "c", &text("x"), 9).expect_err("no room");
        assert!(why.contains("spill_total_mib"), "{why}");
    }
}
