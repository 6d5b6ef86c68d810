//! One request, through `wasi:http`. The host checks the grant, adds secrets and keeps the time.

use cofferdam_plugin::{Failure, Result, call};
use wasip2::http::outgoing_handler;
use wasip2::http::types::{ErrorCode, Fields, IncomingResponse, OutgoingRequest, Scheme};
use wasip2::io::streams::StreamError;

use crate::address::Address;
use crate::follow::Response;

const BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
const CHUNK_BYTES: u64 = 64 * 1024;
const HEADERS: [(&str, &str); 2] = [
    ("accept", "text/html, application/json, text/*;q=0.9, */*;q=0.5"),
    ("user-agent", "cofferdam-fetch/0.1"),
];

pub(crate) fn get(address: &Address) -> Result<Response> {
    let headers = Fields::new();
    for (name, value) in HEADERS {
        headers
            .append(name, value.as_bytes())
            .map_err(|error| Failure::other(format!("header {name}: {error:?}")))?;
    }
    let request = OutgoingRequest::new(headers);
    let scheme = if address.secure { Scheme::Https } else { Scheme::Http };
    let invalid = |()| Failure::rejected(format!("{address} is no valid address"));
    request.set_scheme(Some(&scheme)).map_err(invalid)?;
    request.set_authority(Some(&address.authority)).map_err(invalid)?;
    request.set_path_with_query(Some(&address.path)).map_err(invalid)?;

    let pending =
        outgoing_handler::handle(request, None).map_err(|error| failure(address, &error))?;
    pending.subscribe().block();
    match pending.get() {
        Some(Ok(Ok(response))) => read(address, &response),
        Some(Ok(Err(error))) => Err(failure(address, &error)),
        _ => Err(Failure::other("the host gave no response")),
    }
}

fn read(address: &Address, response: &IncomingResponse) -> Result<Response> {
    let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
    let headers = response.headers().entries();
    let headers =
        headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), text(value))).collect();
    let mut answer = Response { status: response.status(), headers, ..Response::default() };

    let gone = |()| Failure::other("the body was taken already");
    let body = response.consume().map_err(gone)?;
    let stream = body.stream().map_err(gone)?;
    loop {
        match stream.blocking_read(CHUNK_BYTES) {
            Ok(chunk) => answer.body.extend_from_slice(&chunk),
            Err(StreamError::Closed) => return Ok(answer),
            Err(StreamError::LastOperationFailed(error)) => {
                let message = format!("{address} broke off: {}", error.to_debug_string());
                return Err(Failure::unavailable(message));
            }
        }
        if answer.body.len() >= BODY_BYTES_MAX {
            answer.body.truncate(BODY_BYTES_MAX);
            answer.cut = true;
            return Ok(answer);
        }
        if call::is_cancelled() {
            return Err(Failure::unavailable("aborted while reading the body"));
        }
    }
}

fn failure(address: &Address, error: &ErrorCode) -> Failure {
    let origin = address.origin();
    match error {
        ErrorCode::HttpRequestDenied => Failure::denied(format!(
            "{origin} is not granted to this plugin; the operator allows it with `grants.http = [\"GET {origin}/\"]`"
        ))
        .code("not-granted"),
        ErrorCode::DestinationIpProhibited => Failure::denied(format!(
            "{origin} is at a private or local address, which is refused unless the operator names it: \
             `grants.http = [\"GET {origin}/\"]`"
        ))
        .code("private-address"),
        ErrorCode::HttpRequestUriInvalid | ErrorCode::HttpRequestUriTooLong => {
            Failure::rejected(format!("{address} is no valid address"))
        }
        error => Failure::unavailable(format!("{origin}: {}", words(error))),
    }
}

/// `DnsTimeout` as `dns timeout`: names of the standard are words enough.
fn words(error: &ErrorCode) -> String {
    let debug = format!("{error:?}");
    let name = debug.strip_prefix("ErrorCode::").unwrap_or(&debug);
    let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(name.len());
    let mut words = String::new();
    for c in name[..end].chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words + &name[end..]
}
