//! A small HTTP server on loopback, for trials of requests.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// The header whose value the server sends back.
pub(super) const ECHOED: &str = "x-probe";

/// A server that answers every request with so many bytes, or with the value of its [`ECHOED`]
/// header. It ends with this value.
pub(super) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    body_bytes: AtomicUsize,
    requests: AtomicUsize,
    over: AtomicBool,
}

impl Server {
    pub(super) fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::<Shared>::default();
        let serves = shared.clone();
        std::thread::Builder::new().name("cofferdam-doctor".into()).spawn(move || {
            for stream in listener.incoming() {
                if serves.over.load(Ordering::Relaxed) {
                    return;
                }
                if let Ok(stream) = stream {
                    // A client that went away is not this server's trouble.
                    let _ = serve(stream, &serves);
                }
            }
        })?;
        Ok(Self { address, shared })
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(super) fn set_body(&self, bytes: usize) {
        self.shared.body_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Requests that came in.
    pub(super) fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        // Wakes the thread, which then sees that it is over.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    const HEAD_BYTES_MAX: usize = 64 << 10;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut head = Vec::new();
    let mut part = [0; 4_096];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        match stream.read(&mut part)? {
            0 => return Ok(()),
            read => head.extend_from_slice(&part[..read]),
        }
    }
    shared.requests.fetch_add(1, Ordering::Relaxed);
    let head = String::from_utf8_lossy(&head);
    let echoed = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case(ECHOED).then(|| value.trim().as_bytes().to_vec())
    });
    let body = echoed.unwrap_or_else(|| vec![b'b'; shared.body_bytes.load(Ordering::Relaxed)]);
    let length = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n")?;
    stream.write_all(&body)
}
