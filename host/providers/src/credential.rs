//! Where the credential of a model call comes from. It is asked for at every call, because a
//! short-lived one may expire during a long tool phase, and it is kept nowhere.

use cofferdam_agent::model::Secret;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// How long a command may take to print a credential: it may ask the person for a finger.
const COMMAND_TIME: Duration = Duration::from_secs(60);
/// Bytes of a credential.
const CREDENTIAL_BYTES_MAX: usize = 16 * 1024;

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
    /// A program and its arguments, no shell. It prints the credential on standard output; its
    /// standard error is the process's own.
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
        let child = tokio::process::Command::new(&program)
            .args(words.get(1..).unwrap_or_default())
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|problem| failed(problem.to_string()))?;
        let output = tokio::time::timeout(COMMAND_TIME, child.wait_with_output())
            .await
            .map_err(|_| failed(format!("no answer within {} s", COMMAND_TIME.as_secs())))?
            .map_err(|problem| failed(problem.to_string()))?;
        if !output.status.success() {
            return Err(failed(output.status.to_string()));
        }
        String::from_utf8(output.stdout).map_err(|_| self.unfit("is no text"))
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
            (sh("true"), "is empty"),
            (sh("printf 's3cret\\nsecond line'"), "no header can carry"),
            (CredentialSource::Command(vec!["/no/such/program".into()]), "/no/such/program"),
        ] {
            let problem = source.resolve().await.unwrap_err();
            let shown = format!("{problem} {problem:?}");
            assert!(shown.contains(want) && !shown.contains("s3cret"), "{shown}");
        }
    }
}
