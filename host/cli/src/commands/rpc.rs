//! `cofferdam rpc`: an agent driven by lines of JSON on standard input and output.

use super::open::{Opened, open};
use crate::args::RpcArgs;
use crate::exit::{ABORTED, DONE, Exit, Refused as _};
use crate::observe::Observing;
use cofferdam_agent::AbortSignal;
use cofferdam_app::{Options, approve, rpc};
use tokio::io::BufReader;

pub(crate) async fn run(args: RpcArgs) -> anyhow::Result<Exit> {
    let (approver, questions) = approve::channel();
    let options = Options { approver: Some(approver), ..Options::default() };
    let observing = Observing::begin(&args.observe, Some(&args.metrics)).await.refused()?;
    let Opened { agent, .. } = open(&args.file, Some(&args.record), &observing, options).await?;
    let (input, output) = (BufReader::new(tokio::io::stdin()), tokio::io::stdout());
    let stop = AbortSignal::new();
    let mut served = std::pin::pin!(rpc::serve(agent, questions, input, output, stop.clone()));
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
