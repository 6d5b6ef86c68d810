//! `cofferdam rpc`: an agent driven by lines of JSON on standard input and output.

use super::open::{Opened, note, open};
use crate::args::RpcArgs;
use crate::exit::{ABORTED, DONE, Exit, Refused as _};
use crate::observe::Observing;
use cofferdam_agent::AbortSignal;
use cofferdam_app::reload::Reload;
use cofferdam_app::{Options, approve, rpc};
use tokio::io::BufReader;

pub(crate) async fn run(args: RpcArgs) -> anyhow::Result<Exit> {
    let (approver, questions) = approve::channel();
    let reload = Reload::new(note);
    let watched = Some(reload.clone());
    let options = Options { approver: Some(approver), reload: watched, ..Options::default() };
    let observing = Observing::begin(&args.observe, Some(&args.metrics)).await.refused()?;
    let Opened { agent, .. } = open(&args.file, Some(&args.record), &observing, options).await?;
    let (input, output) = (BufReader::new(tokio::io::stdin()), tokio::io::stdout());
    let stop = AbortSignal::new();
    let mut served = std::pin::pin!(rpc::serve_watched(
        agent,
        Some(reload),
        questions,
        input,
        output,
        stop.clone()
    ));
    loop {
        tokio::select! {
            served = &mut served => {
                served?;
                return Ok(if stop.is_cancelled() { ABORTED } else { DONE });
            }
            Ok(()) = tokio::signal::ctrl_c() => {
                if stop.is_cancelled() {
                    return Ok(ABORTED);
                }
                stop.cancel();
            }
        }
    }
}
