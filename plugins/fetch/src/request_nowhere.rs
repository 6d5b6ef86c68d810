//! Requests where there is no host: refused. Tests bring servers of their own.

use cofferdam_plugin::{Failure, Result};

use crate::address::Address;
use crate::follow::Response;

pub(crate) fn get(address: &Address) -> Result<Response> {
    Err(Failure::unavailable(format!("no network to reach {address}")))
}
