//! A server on loopback that answers as it is told, byte for byte.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use cofferdam_providers::Wire;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// One answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// The head, down to its empty line.
    pub(crate) head: String,
    /// The body, in the pieces in which it is written.
    pub(crate) pieces: Vec<Vec<u8>>,
    /// Whether the connection stays open after the body, until the client closes it.
    pub(crate) hold: bool,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The first line.
    pub(crate) line: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) body: serde_json::Value,
}

/// A running server.
pub(crate) struct Server {
    /// `http://127.0.0.1:PORT`.
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// A message for each connection that the client closed while it was held.
    pub(crate) closed: mpsc::UnboundedReceiver<()>,
}

impl Reply {
    /// An event stream, whole.
    pub(crate) fn events(body: impl Into<Vec<u8>>) -> Self {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        Self { head: head.into(), pieces: vec![body.into()], hold: false }
    }

    /// A refusal.
    pub(crate) fn status(status: &str, headers: &str, body: &str) -> Self {
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}connection: close\r\n\r\n",
            body.len()
        );
        Self { head, pieces: vec![body.into()], hold: false }
    }

    /// The same, one byte per write.
    pub(crate) fn byte_by_byte(mut self) -> Self {
        self.pieces = self.pieces.concat().into_iter().map(|byte| vec![byte]).collect();
        self
    }

    /// The same, cut in two.
    pub(crate) fn cut_at(mut self, offset: usize) -> Self {
        let (first, second) = {
            let whole = self.pieces.concat();
            let (a, b) = whole.split_at(offset);
            (a.to_vec(), b.to_vec())
        };
        self.pieces = vec![first, second];
        self
    }

    /// The same, with the connection held open behind it.
    pub(crate) fn held(mut self) -> Self {
        self.hold = true;
        self
    }
}

impl Server {
    /// Answers requests with these replies, in order; the last one again and again.
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (gone, closed) = mpsc::unbounded_channel();
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        let book = asked.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let reply = match replies.len() {
                    1 => replies[0].clone(),
                    _ => replies.pop_front().unwrap(),
                };
                tokio::spawn(answer(stream, reply, book.clone(), gone.clone()));
            }
        });
        Self { url, asked, closed }
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Asked {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }
}

/// A plain last answer.
pub(crate) fn stop(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => concat!(
            "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\n",
            "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"done\"}}\n\n",
            "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
            "data: {\"type\":\"message_stop\"}\n\n",
        ),
        Wire::Chat(_) => {
            "data: {\"choices\":[{\"delta\":{\"content\":\"done\"},\"finish_reason\":\"stop\"}]}\n\n"
        }
        Wire::Responses => {
            "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"done\"}]}]}}\n\n"
        }
        Wire::Gemini => {
            "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"done\"}]},\"finishReason\":\"STOP\"}]}\n\n"
        }
    }
}

async fn answer(
    mut stream: TcpStream,
    reply: Reply,
    book: Arc<Mutex<Vec<Asked>>>,
    gone: mpsc::UnboundedSender<()>,
) {
    stream.set_nodelay(true).unwrap();
    let Some(asked) = request(&mut stream).await else { return };
    book.lock().unwrap().push(asked);
    let mut sent = stream.write_all(reply.head.as_bytes()).await;
    let many = reply.pieces.len() > 1;
    for piece in &reply.pieces {
        if sent.is_err() {
            break;
        }
        sent = stream.write_all(piece).await;
        // Gives the reader a chance to see this piece by itself.
        if many {
            tokio::task::yield_now().await;
        }
    }
    if reply.hold {
        // A read of nothing, or a reset: the client is gone.
        let _ = stream.read(&mut [0; 1]).await;
        let _ = gone.send(());
        return;
    }
    let _ = stream.shutdown().await;
}

async fn request(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.lines();
    let line = lines.next().unwrap_or_default().to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    while bytes.len() < head_end + length {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
        }
    }
    let body = serde_json::from_slice(&bytes[head_end..]).unwrap_or_default();
    Some(Asked { line, headers, body })
}
