//! The body of a response as events: framing by `sse-stream`, and around it what a model call needs
//! besides: a bound on the bytes, a bound on the silence, and the last event even if its closing
//! blank line is missing.

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt};
use reqwest::Response;
use sse_stream::SseByteStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Bytes of one answer on the wire. The longest answers of today's models are below 2 MiB of text,
/// and the wordiest wire uses some 200 bytes a token.
const BODY_BYTES_MAX: usize = 128 << 20;
/// How long a stream may stay open and silent once its answer's ending is known.
const AFTERMATH: Duration = Duration::from_secs(5);

/// One event.
#[derive(Debug)]
pub(crate) struct Event {
    /// Its name; empty if it has none.
    pub(crate) name: String,
    /// Its data.
    pub(crate) data: String,
    /// The bytes ended inside it: it may be cut.
    pub(crate) unclosed: bool,
}

/// The events of one response.
pub(crate) struct Events {
    events: SseByteStream<BoxStream<'static, Result<Bytes, BodyError>>>,
    flags: Arc<Flags>,
}

/// Why a body ended before its end.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the connection broke: {0}")]
    Broken(String),
    #[error("nothing came for {} s, the limit (`timeouts.idle_s`)", .0.as_secs_f64())]
    Idle(Duration),
    #[error("the response has more than {} MiB, the limit", BODY_BYTES_MAX >> 20)]
    TooLong,
}

#[derive(Debug, Default)]
struct Flags {
    /// All bytes have come.
    ended: AtomicBool,
    /// The ending of the answer is known.
    stated: AtomicBool,
}

struct Body {
    source: Option<Source>,
    flags: Arc<Flags>,
    idle: Duration,
    bytes: usize,
}

/// Where bytes come from.
enum Source {
    Response(Response),
    Pieces(std::vec::IntoIter<Bytes>),
}

impl Events {
    /// The events of a response whose head has come.
    pub(crate) fn of(response: Response, idle: Duration) -> Self {
        Self::from(Source::Response(response), idle)
    }

    /// The events of a body that is here already.
    pub(crate) fn of_pieces(pieces: Vec<Bytes>) -> Self {
        Self::from(Source::Pieces(pieces.into_iter()), Duration::ZERO)
    }

    fn from(source: Source, idle: Duration) -> Self {
        let flags = Arc::new(Flags::default());
        let body = Body { source: Some(source), flags: flags.clone(), idle, bytes: 0 };
        let pieces =
            futures::stream::unfold(body, async |mut body| Some((body.next().await?, body)));
        Self { events: SseByteStream::new(pieces.boxed()), flags }
    }

    /// The next event that has data; `None` at the end of the body.
    pub(crate) async fn next(&mut self) -> Option<Result<Event, String>> {
        loop {
            match self.events.next().await? {
                Err(sse_stream::Error::Body(problem)) => return Some(Err(problem.to_string())),
                Err(problem) => {
                    return Some(Err(format!("the response is no event stream: {problem}")));
                }
                Ok(event) => {
                    let Some(data) = event.data.filter(|data| !data.trim().is_empty()) else {
                        continue;
                    };
                    let name = event.event.unwrap_or_default();
                    let unclosed = self.flags.ended.load(Ordering::Relaxed);
                    return Some(Ok(Event { name, data, unclosed }));
                }
            }
        }
    }

    /// The ending of the answer is known: what may still come is not waited for long.
    pub(crate) fn ending_is_known(&self) {
        self.flags.stated.store(true, Ordering::Relaxed);
    }
}

impl Body {
    async fn next(&mut self) -> Option<Result<Bytes, BodyError>> {
        let came = match self.source.as_mut()? {
            Source::Pieces(pieces) => Ok(pieces.next()),
            Source::Response(response) => {
                let stated = self.flags.stated.load(Ordering::Relaxed);
                let idle = if stated { AFTERMATH.min(self.idle) } else { self.idle };
                match tokio::time::timeout(idle, response.chunk()).await {
                    Err(_) => Err(BodyError::Idle(idle)),
                    Ok(came) => {
                        came.map_err(|problem| BodyError::Broken(crate::client::why(&problem)))
                    }
                }
            }
        };
        let piece = came.and_then(|piece| self.counted(piece));
        if piece.is_err() || self.flags.ended.load(Ordering::Relaxed) {
            self.source = None;
        }
        Some(piece)
    }

    /// The piece, if there have not been too many; at the end, what closes an event that the server
    /// left open.
    fn counted(&mut self, piece: Option<Bytes>) -> Result<Bytes, BodyError> {
        let Some(piece) = piece else {
            self.flags.ended.store(true, Ordering::Relaxed);
            return Ok(Bytes::from_static(b"\n\n"));
        };
        self.bytes += piece.len();
        if self.bytes > BODY_BYTES_MAX { Err(BodyError::TooLong) } else { Ok(piece) }
    }
}
