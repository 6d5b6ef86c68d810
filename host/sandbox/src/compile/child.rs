//! The compiler as a process: what the host asks it, and its side of the conversation.
//!
//! The request is one line of JSON and then the component, on standard input. The compiled code goes
//! to standard output, which is a file; a refusal goes to standard error with exit code 1. The
//! process has no environment, and dies when nobody waits for it any more.

use super::{Artifact, Work, refused, with_stack};
use crate::engine::{SandboxConfig, compiling_engine};
use crate::error::LoadError;
use crate::limits::Limits;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, Command};

/// A program that calls [`serve_compiler`] and ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompilerCommand {
    /// The program.
    pub program: PathBuf,
    /// What it takes for it to be the compiler.
    pub args: Vec<OsString>,
}

impl CompilerCommand {
    /// The program that runs, even if its file has been replaced since it was started.
    pub fn this_program(args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let running = PathBuf::from("/proc/self/exe");
        let program = match std::env::current_exe() {
            Ok(program) if !running.exists() => program,
            _ => running,
        };
        Self { program, args: args.into_iter().map(Into::into).collect() }
    }
}

/// What is compiled for: settings that change the code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Request {
    fuel: bool,
    stack_kib: u64,
    compiled_mib: u64,
}

/// Bytes of address space of a compiling process: a component of 18 MB takes 0.3 GB.
const ADDRESS_SPACE_MAX: u64 = 6 << 30;
const COMPLAINT_BYTES_MAX: u64 = 8_192;

impl Request {
    pub(super) fn new(config: &SandboxConfig, limits: &Limits) -> Self {
        Self {
            fuel: limits.fuel.is_some(),
            stack_kib: config.stack_kib,
            compiled_mib: limits.compiled_mib,
        }
    }
}

/// Has the process compile a component. Dropping the future kills it.
pub(super) fn compile(command: CompilerCommand, request: Request, bytes: Vec<u8>) -> Work {
    let failed = |doing: &'static str| {
        move |error: io::Error| LoadError::Sandbox(format!("{doing} the compiler: {error}"))
    };
    Box::pin(async move {
        let product = tempfile::NamedTempFile::new().map_err(failed("make a file for"))?;
        let stdout = product.reopen().map_err(failed("make a file for"))?;
        let mut child = Command::new(&command.program)
            .args(&command.args)
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(failed("start"))?;
        let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
        let (complaint, ()) = tokio::join!(complaint(stderr), ask(stdin, request, bytes));
        let status = child.wait().await.map_err(failed("wait for"))?;
        if status.success() {
            Ok(Artifact::File(product))
        } else {
            Err(refused(&explain(status, &complaint)))
        }
    })
}

async fn ask(stdin: Option<ChildStdin>, request: Request, bytes: Vec<u8>) {
    let Some(mut stdin) = stdin else { return };
    // Numbers and a switch: nothing that could fail. A compiler that does not listen to the end has
    // something to say, or has died; both show in how it ends.
    let mut line = serde_json::to_vec(&request).unwrap_or_default();
    line.push(b'\n');
    let _ = stdin.write_all(&line).await;
    let _ = stdin.write_all(&bytes).await;
}

async fn complaint(stderr: Option<ChildStderr>) -> String {
    let mut text = Vec::new();
    if let Some(stderr) = stderr {
        let mut limited = stderr.take(COMPLAINT_BYTES_MAX);
        let _ = limited.read_to_end(&mut text).await;
        // The rest is read and dropped, so that the compiler does not wait for a reader.
        let _ = tokio::io::copy(&mut limited.into_inner(), &mut tokio::io::sink()).await;
    }
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    text.strip_prefix("error: ").unwrap_or(text).to_owned()
}

fn explain(status: ExitStatus, complaint: &str) -> String {
    match (status.code(), complaint) {
        (Some(1), complaint) if !complaint.is_empty() => complaint.into(),
        (_, "") => format!("the compiler gave up on it ({status})"),
        (_, complaint) => format!("the compiler gave up on it ({status}): {complaint}"),
    }
}

/// The compiler's side: reads a request and a component from standard input and writes the compiled
/// code to standard output. An error is for standard error, and for exit code 1.
pub fn serve_compiler() -> Result<(), String> {
    bound_this_process();
    let (sender, receiver) = std::sync::mpsc::channel();
    let thread = with_stack(move || {
        let answer = || -> Result<(), String> {
            let failed = |error: io::Error| format!("talk to the host: {error}");
            let mut input = io::stdin().lock();
            let mut line = String::new();
            input.by_ref().take(4_096).read_line(&mut line).map_err(failed)?;
            let request: Request = serde_json::from_str(&line)
                .map_err(|error| format!("understand the host: {error}"))?;
            let mut bytes = Vec::new();
            input.read_to_end(&mut bytes).map_err(failed)?;
            let code = produce(&request, &bytes)?;
            let mut output = io::stdout().lock();
            output.write_all(&code).and_then(|()| output.flush()).map_err(failed)
        };
        // The other end waits below.
        let _ = sender.send(answer());
    });
    thread.map_err(|error| format!("start a thread: {error}"))?;
    receiver.recv().unwrap_or_else(|_| Err("the compiler gave up on it".into()))
}

fn produce(request: &Request, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let config = SandboxConfig { stack_kib: request.stack_kib, ..SandboxConfig::default() };
    let engine = compiling_engine(&config, request.fuel).map_err(|error| format!("{error:#}"))?;
    let code = engine.precompile_component(bytes).map_err(|error| format!("{error:#}"))?;
    // Not written, so that the disk is not filled either; the host says what the limit is.
    if code.len() as u64 > request.compiled_mib << 20 {
        return Err(format!(
            "it has {} bytes of compiled code and the limit is {} (`limits.compiled_mib`)",
            code.len(),
            request.compiled_mib << 20
        ));
    }
    Ok(code)
}

/// What this process may take at most, and that it leaves no image of its memory behind.
fn bound_this_process() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let at_most = |bytes| Rlimit { current: Some(bytes), maximum: Some(bytes) };
    // A machine that does not know these limits compiles without them.
    let _ = setrlimit(Resource::As, at_most(ADDRESS_SPACE_MAX));
    let _ = setrlimit(Resource::Core, at_most(0));
}
