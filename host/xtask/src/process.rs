//! Running other programs, with failures that say which command it was.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

/// Runs a command to its end, its output going to the terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = status(command)?;
    ensure!(status.success(), "`{}` failed ({status})", line(command));
    Ok(())
}

/// Runs a command to its end and says how it went.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus> {
    command.status().with_context(|| format!("cannot start `{}`", line(command)))
}

/// Runs a command to its end and returns what it printed. It gets no input.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    ensure!(
        output.status.success(),
        "`{}` failed ({}): {}",
        line(command),
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed something that is not text", line(command)))
}

/// Runs a command that is killed if it takes longer than `limit`. It gets no input.
pub(crate) fn run_within(command: &mut Command, limit: Duration) -> Result<()> {
    let mut child = command
        .stdin(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start `{}`", line(command)))?;
    let Some(status) = wait_within(&mut child, limit)? else {
        child.kill()?;
        child.wait()?;
        bail!("`{}` took more than {} s", line(command), limit.as_secs());
    };
    ensure!(status.success(), "`{}` failed ({status})", line(command));
    Ok(())
}

fn wait_within(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// The command as a person would type it.
fn line(command: &Command) -> String {
    let program = command.get_program();
    let name = std::path::Path::new(program).file_name().unwrap_or(program);
    let mut words = vec![name.to_string_lossy()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_named_as_typed() {
        let mut command = Command::new("/some/where/cargo");
        command.args(["build", "--release"]);
        assert_eq!(line(&command), "cargo build --release");
    }
}
