//! Where the credential of a model call comes from. It is asked for at every call, because a
//! short-lived one may expire during a long tool phase, and it is kept nowhere.

use crate::mask::Mask;
use cofferdam_agent::model::Secret;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How long a command may take to print a credential: it may ask the person for a finger.
const COMMAND_TIME: Duration = Duration::from_secs(60);
/// Bytes of a credential.
const CREDENTIAL_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a command's output that are kept: more than a credential may have.
const OUTPUT_BYTES_MAX: u64 = 64 * 1024;
/// Characters that are shown of what a failed command said.
const SAID_CHARS_MAX: usize = 200;

/// Where a credential comes from. Holds no credential itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CredentialSource {
    /// There is none: a local server.
    #[default]
    None,
    /// The environment variable of this name.
    Env(String),
    /// A file; white space around the credential is left out.
    File(PathBuf),
    /// A program and its arguments, no shell. It prints the credential on standard output; what it
    /// says on standard error is told if it fails.
    Command(Vec<String>),
}

/// A credential that could not be had. Says where it should have come from, never what was there.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// The variable is not set.
    #[error("the environment variable `{0}` with the credential of the model is not set")]
    Unset(String),
    /// The file cannot be read.
    #[error("read the credential of the model from {}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        problem: std::io::Error,
    },
    /// The command cannot be run.
    #[error("run `{command}`, which prints the credential of the model: {problem}")]
    Command {
        /// The program.
        command: String,
        /// What went wrong.
        problem: String,
    },
    /// What was found is no credential.
    #[error("the credential of the model from {source_name} {problem}")]
    Unfit {
        /// Where it came from.
        source_name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

impl CredentialSource {
    /// The credential as it is at this moment.
    pub async fn resolve(&self) -> Result<Option<Secret>, CredentialError> {
        let text = match self {
            Self::None => return Ok(None),
            Self::Env(name) => match std::env::var_os(name) {
                None => return Err(CredentialError::Unset(name.clone())),
                Some(value) => value.into_string().map_err(|_| self.unfit("is no text"))?,
            },
            Self::File(path) => std::fs::read_to_string(path)
                .map_err(|problem| CredentialError::File { path: path.clone(), problem })?,
            Self::Command(words) => self.printed(words).await?,
        };
        self.checked(text.trim()).map(Some)
    }

    async fn printed(&self, words: &[String]) -> Result<String, CredentialError> {
        let program = words.first().cloned().unwrap_or_default();
        let failed =
            |problem: String| CredentialError::Command { command: program.clone(), problem };
        let mut child = tokio::process::Command::new(&program)
            .args(words.get(1..).unwrap_or_default())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|problem| failed(problem.to_string()))?;
        let (output, said) = (child.stdout.take(), child.stderr.take());
        let all = async { tokio::join!(beginning(output), beginning(said), child.wait()) };
        let (output, said, status) = tokio::time::timeout(COMMAND_TIME, all)
            .await
            .map_err(|_| failed(format!("no answer within {} s", COMMAND_TIME.as_secs())))?;
        let status = status.map_err(|problem| failed(problem.to_string()))?;
        if !status.success() {
            let said = excerpt(&String::from_utf8_lossy(&said), &String::from_utf8_lossy(&output));
            let colon = if said.is_empty() { "" } else { ": " };
            return Err(failed(format!("{status}{colon}{said}")));
        }
        String::from_utf8(output).map_err(|_| self.unfit("is no text"))
    }

    fn checked(&self, text: &str) -> Result<Secret, CredentialError> {
        if text.is_empty() {
            return Err(self.unfit("is empty"));
        }
        if text.len() > CREDENTIAL_BYTES_MAX {
            return Err(self.unfit("is longer than 16 KiB"));
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
            return Err(self.unfit("has characters that no header can carry"));
        }
        Ok(Secret::new(text))
    }

    fn unfit(&self, problem: &'static str) -> CredentialError {
        let source_name = match self {
            Self::None => "nowhere".into(),
            Self::Env(name) => format!("the environment variable `{name}`"),
            Self::File(path) => path.display().to_string(),
            Self::Command(words) => format!("`{}`", words.first().map_or("", String::as_str)),
        };
        CredentialError::Unfit { source_name, problem }
    }
}

/// How an output begins; the rest is read and dropped, so that its writer does not wait for a reader.
async fn beginning(output: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let mut kept = Vec::new();
    if let Some(mut output) = output {
        // What cannot be read any more has ended.
        let _ = (&mut output).take(OUTPUT_BYTES_MAX).read_to_end(&mut kept).await;
        let _ = tokio::io::copy(&mut output, &mut tokio::io::sink()).await;
    }
    kept
}

/// What a command said, on one line, without anything that it printed as a credential.
fn excerpt(said: &str, printed: &str) -> String {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let hide = |said: String, line: &str| Mask::of_text(line).apply(&said);
    let said = std::iter::once(printed)
        .chain(printed.lines())
        .map(words)
        .fold(words(said), |s, l| hide(s, &l));
    let escaped =
        |c: char| if c.is_control() { c.escape_unicode().collect() } else { c.to_string() };
    let shown: String = said.chars().take(SAID_CHARS_MAX).map(escaped).collect();
    if said.chars().count() > SAID_CHARS_MAX { shown + "…" } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> CredentialSource {
        CredentialSource::Command(vec!["sh".into(), "-c".into(), script.into()])
    }

    #[tokio::test]
    async fn files_and_commands_are_asked_anew_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let sources =
            [CredentialSource::File(path.clone()), sh(&format!("cat {}", path.display()))];
        for text in ["first-key\n", "  second-key"] {
            std::fs::write(&path, text).unwrap();
            for source in &sources {
                let secret = source.resolve().await.unwrap().unwrap();
                assert_eq!(secret.expose(), text.trim());
                assert!(!format!("{secret:?} {source:?}").contains("-key"));
            }
        }
    }

    #[tokio::test]
    async fn what_is_no_credential_is_told_without_being_shown() {
        assert!(CredentialSource::None.resolve().await.unwrap().is_none());
        for (source, want) in [
            (CredentialSource::Env("COFFERDAM_TEST_UNSET".into()), "`COFFERDAM_TEST_UNSET`"),
            (CredentialSource::File("/no/such/file".into()), "/no/such/file"),
            (sh("echo s3cret; exit 3"), "exit status: 3"),
            (sh("echo s3cret; echo got s3cret, no >&2; exit 3"), "3: got [credential], no"),
            (sh("printf 'ab\\nxs3crety'; echo 1 xs3crety 2 >&2; exit 3"), "3: 1 [credential] 2"),
            (sh("printf 'one\\n\\033[2Jtwo\\n' >&2; exit 3"), "3: one \\u{1b}[2Jtwo"),
            (sh("true"), "is empty"),
            (sh("printf 's3cret\\nsecond line'"), "no header can carry"),
            (CredentialSource::Command(vec!["/no/such/program".into()]), "/no/such/program"),
        ] {
            let problem = source.resolve().await.unwrap_err();
            let shown = format!("{problem} {problem:?}");
            assert!(shown.contains(want) && !shown.contains("s3cret"), "{shown}");
        }
    }

    #[tokio::test]
    async fn a_command_that_says_much_is_read_to_its_end_and_shown_in_part() {
        let much = "head -c 300000 /dev/zero | tr '\\0' y";
        let said = much.replace('y', "x");
        let problem = sh(&format!("{said} >&2; {much}; exit 3")).resolve().await.unwrap_err();
        let shown = problem.to_string();
        assert!(shown.ends_with("x…") && shown.chars().count() < 350, "{shown}");
        let problem = sh(much).resolve().await.unwrap_err();
        assert!(problem.to_string().ends_with("is longer than 16 KiB"), "{problem}");
    }
}
