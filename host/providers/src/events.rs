//! The body of a response as events: framing by `sse-stream`, and around it what a model call needs
//! besides: a bound on the bytes, a bound on the silence, the last event even if its closing blank
//! line is missing, and the words of a body that holds no events at all.

use crate::http::{REFUSAL_BYTES_MAX, told};
use crate::mask::Mask;
use crate::utf8::Utf8;
use bytes::{Bytes, BytesMut};
use futures::stream::{BoxStream, StreamExt};
use reqwest::Response;
use sse_stream::SseByteStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
    /// No event has come.
    none: bool,
    mask: Mask,
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
    /// How the body begins, until it is known to hold events.
    start: Mutex<Vec<u8>>,
    /// It is known.
    framed: AtomicBool,
}

struct Body {
    source: Option<Source>,
    flags: Arc<Flags>,
    idle: Duration,
    bytes: usize,
    utf8: Utf8,
}

/// Where bytes come from.
enum Source {
    Response(Response),
    Pieces(std::vec::IntoIter<Bytes>),
}

impl Events {
    /// The events of a response whose head has come.
    pub(crate) fn of(response: Response, idle: Duration, mask: Mask) -> Self {
        Self { mask, ..Self::from(Source::Response(response), idle) }
    }

    /// The events of a body that is here already.
    pub(crate) fn of_pieces(pieces: Vec<Bytes>) -> Self {
        Self::from(Source::Pieces(pieces.into_iter()), Duration::ZERO)
    }

    fn from(source: Source, idle: Duration) -> Self {
        let flags = Arc::new(Flags::default());
        let body = Body {
            source: Some(source),
            flags: flags.clone(),
            idle,
            bytes: 0,
            utf8: Utf8::default(),
        };
        let pieces =
            futures::stream::unfold(body, async |mut body| Some((body.next().await?, body)));
        let events = SseByteStream::new(pieces.boxed());
        Self { events, flags, none: true, mask: Mask::default() }
    }

    /// The next event that has data; `None` at the end of the body.
    pub(crate) async fn next(&mut self) -> Option<Result<Event, String>> {
        loop {
            let Some(came) = self.events.next().await else {
                return self.instead().map(Err);
            };
            match came {
                Err(sse_stream::Error::Body(problem)) => return Some(Err(problem.to_string())),
                Err(problem) => {
                    return Some(Err(format!("the response is no event stream: {problem}")));
                }
                Ok(event) => {
                    let Some(data) = event.data.filter(|data| !data.trim().is_empty()) else {
                        continue;
                    };
                    if std::mem::take(&mut self.none) {
                        self.flags.framed.store(true, Ordering::Relaxed);
                        self.flags.start().clear();
                    }
                    let name = event.event.unwrap_or_default();
                    let unclosed = self.flags.ended.load(Ordering::Relaxed);
                    return Some(Ok(Event { name, data, unclosed }));
                }
            }
        }
    }

    /// What a body says that has ended and held no event: the page of a proxy, an error as JSON.
    fn instead(&mut self) -> Option<String> {
        if !std::mem::take(&mut self.none) {
            return None;
        }
        let body = String::from_utf8_lossy(&self.flags.start()).into_owned();
        let line = body.trim_start_matches('\u{feff}').trim_start();
        let field = line.split(['\n', '\r', ':']).next().unwrap_or_default();
        if line.is_empty() || matches!(field, "" | "data" | "event" | "id" | "retry") {
            return None;
        }
        // Masked before it is cut: half a credential would not be found.
        let told = told(&self.mask.apply(&body));
        Some(format!("the server answered with something else than an event stream: {told}"))
    }

    /// The ending of the answer is known: what may still come is not waited for long.
    pub(crate) fn ending_is_known(&self) {
        self.flags.stated.store(true, Ordering::Relaxed);
    }
}

impl Flags {
    fn start(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.start.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The piece as text, if there have not been too many; at the end, what closes an event that the
    /// server left open.
    fn counted(&mut self, piece: Option<Bytes>) -> Result<Bytes, BodyError> {
        let Some(piece) = piece else {
            self.flags.ended.store(true, Ordering::Relaxed);
            let mut end = BytesMut::from(self.utf8.end());
            end.extend_from_slice(b"\n\n");
            return Ok(end.freeze());
        };
        self.bytes += piece.len();
        if self.bytes > BODY_BYTES_MAX {
            return Err(BodyError::TooLong);
        }
        if !self.flags.framed.load(Ordering::Relaxed) {
            let mut start = self.flags.start();
            let room = REFUSAL_BYTES_MAX.saturating_sub(start.len()).min(piece.len());
            start.extend_from_slice(&piece[..room]);
        }
        Ok(self.utf8.push(piece))
    }
}
