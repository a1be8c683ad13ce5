//! Between a program and its agent: passes everything on, and notes what the program says.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{NONCE_BYTES, receive_message, send};

/// A message of a program.
#[derive(Clone, Debug)]
pub struct Said {
    /// Its length, and its bytes.
    pub bytes: Vec<u8>,
    /// Whether a descriptor went with it.
    pub has_fd: bool,
    /// What the pool held then; empty before there was one.
    pub pool: Vec<u8>,
}

/// What a rank said from the greeting to the end, of a session that it began.
#[derive(Clone, Debug, Default)]
pub struct Talk {
    /// Its messages.
    pub said: Vec<Said>,
    /// The number that the agent gave it.
    pub nonce: [u8; NONCE_BYTES],
}

/// Listens where a program looks for its agent, for as long as the process lives.
pub struct Recorder {
    talks: Arc<Mutex<Vec<Arc<Mutex<Talk>>>>>,
}

impl Recorder {
    /// Listens in a directory of its own, and passes on to the agent's socket.
    pub fn listen(dir: &Path, agent: PathBuf) -> io::Result<Self> {
        let listener = UnixListener::bind(dir.join("agent.sock"))?;
        let talks = Arc::new(Mutex::new(Vec::new()));
        let for_thread = Arc::clone(&talks);
        std::thread::spawn(move || {
            for program in listener.incoming().map_while(Result::ok) {
                let Ok(agent) = UnixStream::connect(&agent) else { return };
                let talk = Arc::new(Mutex::new(Talk::default()));
                for_thread.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&talk));
                std::thread::spawn(move || pass_on(&program, &agent, &talk));
            }
        });
        Ok(Self { talks })
    }

    /// The sessions that were begun.
    pub fn talks(&self) -> Vec<Talk> {
        let talks = self.talks.lock().unwrap_or_else(PoisonError::into_inner);
        let talks = talks.iter().map(|talk| lock(talk).clone());
        talks.filter(|talk| talk.said.iter().any(|said| said.has_fd)).collect()
    }
}

fn lock(talk: &Mutex<Talk>) -> std::sync::MutexGuard<'_, Talk> {
    talk.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pass_on(program: &UnixStream, agent: &UnixStream, talk: &Mutex<Talk>) {
    let pool: Mutex<Option<File>> = Mutex::new(None);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = pass_replies(agent, program, talk, &pool);
            let _ = program.shutdown(std::net::Shutdown::Both);
        });
        while let Ok(Some((bytes, fd))) = receive_message(program) {
            let held = pool.lock().unwrap_or_else(PoisonError::into_inner);
            let pool = held.as_ref().map(read_pool).unwrap_or_default();
            drop(held);
            lock(talk).said.push(Said { bytes: bytes.clone(), has_fd: fd.is_some(), pool });
            if send(agent, &bytes, fd.as_ref().map(AsFd::as_fd)).is_err() {
                break;
            }
        }
        let _ = agent.shutdown(std::net::Shutdown::Both);
    });
}

fn pass_replies(
    agent: &UnixStream,
    program: &UnixStream,
    talk: &Mutex<Talk>,
    pool: &Mutex<Option<File>>,
) -> io::Result<()> {
    while let Some((bytes, fd)) = receive_message(agent)? {
        send(program, &bytes, fd.as_ref().map(AsFd::as_fd))?;
        if let Some(fd) = fd {
            lock(talk).nonce = bytes.last_chunk().copied().unwrap_or_default();
            *pool.lock().unwrap_or_else(PoisonError::into_inner) = Some(File::from(fd));
        }
    }
    Ok(())
}

fn read_pool(pool: &File) -> Vec<u8> {
    let mut bytes = vec![0; pool.metadata().map_or(0, |about| about.len() as usize)];
    let _ = pool.read_exact_at(&mut bytes, 0);
    bytes
}
