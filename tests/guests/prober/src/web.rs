//! Steps on the web, as raw calls of `wasi:http`, and bytes for standard output and error.

use cofferdam_plugin::{Value, json};
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    Fields, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest, RequestOptions,
    Scheme,
};
use wasip2::io::streams::StreamError;

use crate::files::broken;

type Tried = Result<Value, String>;

/// Sends a request, with nothing about it corrected, and reads the answer.
pub(crate) fn request(step: &Value) -> Tried {
    let response = response(step)?;
    let status = response.status();
    let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
    let headers = response.headers().entries();
    let headers: Vec<_> = headers.into_iter().map(|(name, value)| (name, text(value))).collect();
    let (body, trailers) = read(&response, step["read"].as_u64())?;
    Ok(json!({ "status": status, "headers": headers, "body": text(body), "trailers": trailers }))
}

/// Reads an answer byte by byte for as long as it comes.
pub(crate) fn drip(step: &Value) -> Tried {
    let response = response(step)?;
    let body = response.consume().map_err(|()| "no body")?;
    let stream = body.stream().map_err(|()| "no stream")?;
    let mut bytes = 0_u64;
    loop {
        match stream.blocking_read(1) {
            Ok(piece) => bytes += piece.len() as u64,
            Err(error) => return Err(format!("{} after {bytes} bytes", broken(error))),
        }
    }
}

fn response(step: &Value) -> Result<IncomingResponse, String> {
    let text = |name: &str| step[name].as_str();
    let headers = Fields::new();
    for pair in step["headers"].as_array().into_iter().flatten() {
        let (name, value) = (pair[0].as_str().unwrap_or_default(), pair[1].as_str());
        headers
            .append(name, value.unwrap_or_default().as_bytes())
            .map_err(|error| format!("header {name}: {error:?}"))?;
    }
    let request = OutgoingRequest::new(headers);
    let method = match text("method").unwrap_or("GET") {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "CONNECT" => Method::Connect,
        other => Method::Other(other.to_owned()),
    };
    request.set_method(&method).map_err(|()| "bad method")?;
    let scheme = match text("scheme").unwrap_or("http") {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.to_owned()),
    };
    request.set_scheme(Some(&scheme)).map_err(|()| "bad scheme")?;
    request.set_authority(text("authority")).map_err(|()| "bad authority")?;
    request.set_path_with_query(text("path")).map_err(|()| "bad path")?;
    let options = step["timeouts_ms"].as_u64().map(|ms| {
        let options = RequestOptions::new();
        let nanoseconds = Some(ms.saturating_mul(1_000_000));
        // One that the host refuses stays as it was.
        let _ = options.set_connect_timeout(nanoseconds);
        let _ = options.set_first_byte_timeout(nanoseconds);
        let _ = options.set_between_bytes_timeout(nanoseconds);
        options
    });
    let body = match text("body") {
        Some(_) => Some(request.body().map_err(|()| "no body")?),
        None => None,
    };
    let pending = outgoing_handler::handle(request, options).map_err(|e| format!("{e:?}"))?;
    if let (Some(body), Some(sent)) = (body, text("body")) {
        write(&body, sent, step["times"].as_u64().unwrap_or(1))?;
        OutgoingBody::finish(body, None).map_err(|error| format!("{error:?}"))?;
    }
    pending.subscribe().block();
    match pending.get() {
        Some(Ok(Ok(response))) => Ok(response),
        Some(Ok(Err(error))) => Err(format!("{error:?}")),
        _ => Err("no response".to_owned()),
    }
}

fn write(body: &OutgoingBody, text: &str, times: u64) -> Result<(), String> {
    let stream = body.write().map_err(|()| "no stream")?;
    for _ in 0..times {
        for piece in text.as_bytes().chunks(4096) {
            stream.blocking_write_and_flush(piece).map_err(broken)?;
        }
    }
    Ok(())
}

/// The body, or so many bytes of it, and its trailers.
fn read(response: &IncomingResponse, bytes_max: Option<u64>) -> Result<(Vec<u8>, Value), String> {
    let mut bytes = Vec::new();
    let body = response.consume().map_err(|()| "no body")?;
    let stream = body.stream().map_err(|()| "no stream")?;
    loop {
        if bytes_max.is_some_and(|max| bytes.len() as u64 >= max) {
            return Ok((bytes, Value::Null));
        }
        match stream.blocking_read(65_536) {
            Ok(piece) => bytes.extend(piece),
            Err(StreamError::Closed) => break,
            Err(error) => return Err(format!("{} after {} bytes", broken(error), bytes.len())),
        }
    }
    drop(stream);
    let trailers = IncomingBody::finish(body);
    trailers.subscribe().block();
    let Some(Ok(Ok(Some(trailers)))) = trailers.get() else { return Ok((bytes, Value::Null)) };
    let text = |value: Vec<u8>| String::from_utf8_lossy(&value).into_owned();
    let trailers: Vec<_> =
        trailers.entries().into_iter().map(|(name, value)| (name, text(value))).collect();
    Ok((bytes, json!(trailers)))
}

/// Writes to standard output or standard error.
pub(crate) fn say(error: bool, text: &str, times: u64) {
    let stream = match error {
        true => wasip2::cli::stderr::get_stderr(),
        false => wasip2::cli::stdout::get_stdout(),
    };
    for _ in 0..times.max(1) {
        for piece in text.as_bytes().chunks(4096) {
            drop(stream.blocking_write_and_flush(piece));
        }
    }
}
