//! A body that counts its bytes and does not stall for ever.

use super::Meter;
use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;
use wasmtime_wasi_http::Error;

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
