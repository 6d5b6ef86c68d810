//! `cofferdam compile`, which the host starts for itself: a component is compiled in a process that
//! can be killed, and that takes the compiler's memory along when it ends.

use crate::exit::{DONE, Exit};

pub(crate) fn run() -> anyhow::Result<Exit> {
    cofferdam_sandbox::serve_compiler().map_err(anyhow::Error::msg)?;
    Ok(DONE)
}
