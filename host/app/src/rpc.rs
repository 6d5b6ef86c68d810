//! An agent driven by lines of JSON, over any pair of streams: requests in, answers, events and
//! questions out. `host/docs/rpc.md` is the protocol for those who write a client,
//! `host/docs/rpc.schema.json` its schema.
//!
//! What comes in is not trusted: a line that is no request is answered with an error and changes
//! nothing. What goes out waits for nobody: see [`outbox`].

mod event;
mod lines;
mod outbox;
mod request;
mod session;
mod short;

use crate::approve::Questions;
use crate::reload::Reload;
use cofferdam_agent::{AbortSignal, Agent};
use event::Events;
use lines::Lines;
use outbox::Outbox;
use session::Session;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt as _};

/// The version of the protocol, in the first line that goes out.
pub const PROTOCOL: u32 = 1;

/// How long a reader gets for what is left when the session is over.
const FAREWELL: Duration = Duration::from_secs(10);

/// Serves one client until the input ends, the output cannot be written or `stop` is set. A run that
/// is active then is aborted, and its end is waited for.
///
/// `questions` come from the agent's approver, see [`crate::approve::channel`]. Fails if the input
/// cannot be read; an output that cannot be written is a client that is gone, which is no failure.
pub async fn serve(
    agent: Agent,
    questions: Questions,
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Unpin,
    stop: AbortSignal,
) -> io::Result<()> {
    serve_watched(agent, None, questions, input, output, stop).await
}

/// The same for an agent whose files are watched over: the client is told what became of a change, and
/// may ask for a look.
pub async fn serve_watched(
    agent: Agent,
    reload: Option<Arc<Reload>>,
    questions: Questions,
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Unpin,
    stop: AbortSignal,
) -> io::Result<()> {
    let outbox = Arc::new(Outbox::default());
    let subscription = agent.subscribe(Arc::new(Events(outbox.clone())));
    let session = Session::new(agent, reload, questions, outbox.clone());
    let (served, ()) = tokio::join!(
        async {
            let served = session.run(Lines::new(input), stop).await;
            drop(subscription);
            outbox.end();
            served
        },
        async {
            let written = write(&outbox, output);
            // A client that reads no more must not keep the host for ever; while the session lives
            // there is no such limit.
            let late = async {
                outbox.ended().await;
                tokio::time::sleep(FAREWELL).await;
            };
            tokio::select! {
                _ = written => {}
                () = late => {}
            }
            outbox.give_up();
        }
    );
    served
}

async fn write(outbox: &Outbox, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
    while let Some(line) = outbox.next().await {
        output.write_all(line.as_bytes()).await?;
        output.write_all(b"\n").await?;
        output.flush().await?;
    }
    Ok(())
}
