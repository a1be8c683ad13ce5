//! A way to global storage that can be disturbed: a port that leads to a real S3 server.
//!
//! ```text
//! ranks, agents -> this port -> mood? -> the server's port
//! ```
//! What is under way when the mood changes is met by it, too: connections are looked at between
//! pieces of what they carry. Requests pass the job's [`Gate`].

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use super::gate::Gate;
use super::stage::request;

/// Bytes that pass between two looks at the mood.
const PIECE: usize = 16 << 10;
/// What a piece waits for on a slow way.
const SLOW: Duration = Duration::from_millis(40);
const REFUSAL: &[u8] =
    b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nRetry-After: 0\r\nConnection: close\r\n\r\n";

/// How the way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Mood {
    Well,
    /// Everything takes long.
    Slow,
    /// Whoever asks is told to come later.
    Busy,
    /// Connections break.
    Broken,
}

/// The way; it ends when this is dropped.
pub(super) struct Proxy {
    port: u16,
    mood: Arc<AtomicU8>,
    over: Arc<AtomicBool>,
}

impl Proxy {
    /// Opens a way to a port of this machine.
    pub(super) fn open(to: u16, gate: &Arc<Gate>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let (mood, over) = (Arc::new(AtomicU8::new(0)), Arc::new(AtomicBool::new(false)));
        let gate = Arc::clone(gate);
        let proxy = Self { port, mood: Arc::clone(&mood), over: Arc::clone(&over) };
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let (mood, gate) = (Arc::clone(&mood), Arc::clone(&gate));
                std::thread::spawn(move || serve(client, to, &mood, &gate));
            }
        });
        Ok(proxy)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn set(&self, mood: Mood) {
        self.mood.store(mood as u8, Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.set(Mood::Broken);
        self.over.store(true, Ordering::SeqCst);
        // Wakes whoever waits for a connection.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn is(mood: &AtomicU8, wanted: Mood) -> bool {
    mood.load(Ordering::SeqCst) == wanted as u8
}

fn serve(mut client: TcpStream, to: u16, mood: &Arc<AtomicU8>, gate: &Gate) {
    if is(mood, Mood::Broken) {
        return;
    }
    if is(mood, Mood::Busy) {
        // What was asked does not matter; who is not heard out may miss the answer.
        let _ = client.set_read_timeout(Some(Duration::from_millis(50)));
        let _ = client.read(&mut [0; PIECE]);
        let _ = client.write_all(REFUSAL);
        return;
    }
    let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, to)) else { return };
    let ends = (client.try_clone(), server.try_clone());
    let (Ok(client_too), Ok(server_too)) = ends else { return };
    let back = Arc::clone(mood);
    let answering = std::thread::spawn(move || carry(server_too, client_too, &back, |_| {}));
    carry(client, server, mood, |piece| {
        if let Some((act, path)) = request(piece) {
            gate.pass_request(act, path);
        }
    });
    // It ends as its streams do.
    let _ = answering.join();
}

/// Carries bytes one way until either end, or the mood, is against it.
fn carry(mut from: TcpStream, mut to: TcpStream, mood: &AtomicU8, look: impl Fn(&[u8])) {
    let mut piece = vec![0; PIECE];
    while let Ok(bytes @ 1..) = from.read(&mut piece) {
        look(&piece[..bytes]);
        if is(mood, Mood::Busy) || is(mood, Mood::Broken) {
            break;
        }
        if is(mood, Mood::Slow) {
            std::thread::sleep(SLOW);
        }
        if to.write_all(&piece[..bytes]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
