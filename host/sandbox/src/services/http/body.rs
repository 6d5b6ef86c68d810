//! Bodies that count their bytes and do not stall for ever, and bodies without secrets.

use super::{Meter, masked_headers};
use crate::mask;
use crate::state::Terms;
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;
use wasmtime_wasi_http::{Error, WasiBody};

/// A body behind the call's meter.
pub(super) struct Metered<B> {
    body: B,
    meter: Arc<Meter>,
    patience: Duration,
    /// Runs while the next frame is awaited.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<B> Metered<B> {
    pub(super) fn new(body: B, meter: Arc<Meter>, patience: Duration) -> Self {
        Self { body, meter, patience, stalled: None }
    }
}

impl<B: Body<Data = Bytes, Error = Error> + Unpin> Body for Metered<B> {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = &mut *self;
        let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) else {
            let patience = this.patience;
            let stalled =
                this.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
            return stalled.as_mut().poll(cx).map(|()| Some(Err(Error::ConnectionReadTimeout)));
        };
        this.stalled = None;
        Poll::Ready(frame.map(|frame| {
            let frame = frame?;
            let bytes = frame.data_ref().map_or(0, Buf::remaining);
            match this.meter.take(bytes) {
                true => Ok(frame),
                false => Err(Error::HttpResponseBodySize(Some(this.meter.bytes_max))),
            }
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body whose secrets are masked, also one that lies across its frames. Its length stays.
pub(super) struct Masked {
    body: WasiBody,
    terms: Arc<Terms>,
    stream: mask::Stream,
    /// What comes after the bytes that were held to the last.
    last: Option<Frame<Bytes>>,
    ended: bool,
}

impl Masked {
    pub(super) fn new(body: WasiBody, terms: Arc<Terms>) -> Self {
        let stream = mask::Stream::new(&terms.secrets);
        Self { body, terms, stream, last: None, ended: false }
    }

    /// The end of the data: the held bytes first, if there are any, then the trailers.
    fn end(&mut self, trailers: Option<Frame<Bytes>>) -> Option<Frame<Bytes>> {
        self.ended = true;
        let held = self.stream.finish();
        if held.is_empty() {
            return trailers;
        }
        self.last = trailers;
        Some(Frame::data(held.into()))
    }

    fn trailers(&self, frame: Frame<Bytes>) -> Option<Frame<Bytes>> {
        let trailers = frame.into_trailers().ok()?;
        Some(Frame::trailers(masked_headers(trailers, &self.terms.secrets)))
    }
}

impl Body for Masked {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.ended {
            return Poll::Ready(self.last.take().map(Ok));
        }
        loop {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => return Poll::Ready(self.end(None).map(Ok)),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(frame)) => frame,
            };
            match frame.into_data() {
                Ok(piece) => {
                    let bytes = self.stream.push(&piece);
                    if !bytes.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(bytes.into()))));
                    }
                }
                Err(frame) => {
                    let trailers = self.trailers(frame);
                    return Poll::Ready(self.end(trailers).map(Ok));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.last.is_none()
            && (self.ended || (self.stream.held() == 0 && self.body.is_end_stream()))
    }

    fn size_hint(&self) -> SizeHint {
        // What is held comes on top of what the body still has.
        let (held, inner) = (self.stream.held() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(held));
        if let Some(upper) = inner.upper().and_then(|upper| upper.checked_add(held)) {
            hint.set_upper(upper);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grants::Grants;
    use crate::limits::Limits;
    use crate::services::secret::Secret;
    use futures::stream;
    use http_body_util::{BodyExt, StreamBody};

    fn terms() -> Arc<Terms> {
        Arc::new(Terms {
            plugin: "test".into(),
            limits: Limits::default(),
            grants: Grants::default(),
            log_sink: None,
            http_script: None,
            key_value: None,
            files: Default::default(),
            blocking: crate::blocking::Blocking::unlimited(),
            memory_total: Arc::default(),
            memory_total_max: 0,
            env: Vec::new(),
            secrets: vec![Secret::sample("https://a.example.com", "x-key", "s3cret")],
        })
    }

    #[tokio::test]
    async fn a_secret_across_two_frames_and_trailers() {
        let trailers = [("x-echo", "has s3cret"), ("s3cret", "in its name")]
            .map(|(name, value)| (name.parse().expect(name), value.parse().expect(value)));
        let frames = [
            Frame::data(Bytes::from_static(b"one s3c")),
            Frame::data(Bytes::from_static(b"ret, s3cre")),
            Frame::trailers(trailers.into_iter().collect()),
        ];
        let body = StreamBody::new(stream::iter(frames.map(Ok))).boxed_unsync();
        let collected = Masked::new(body, terms()).collect().await.expect("a body");
        let trailers = collected.trailers().cloned().expect("trailers");
        assert_eq!(collected.to_bytes(), "one ******, s3cre");
        assert_eq!(trailers.len(), 1);
        assert_eq!(trailers["x-echo"], "has ******");
    }
}
