//! From blocking callers to the client's asynchronous calls.
//!
//! Why a runtime of its own and a channel instead of `block_on`: callers may themselves sit
//! inside some runtime, where `block_on` panics, and must not share its threads.

use std::future::Future;
use std::io;
use std::sync::mpsc;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

/// Requests mostly wait; two threads sign and encrypt.
const THREADS: usize = 2;

#[derive(Debug)]
pub(super) struct Bridge {
    /// Taken only by `drop`.
    runtime: Option<Runtime>,
}

impl Bridge {
    pub(super) fn start() -> io::Result<Bridge> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("sf-object")
            .on_thread_start(standfast_sys::keep_signals_away)
            .enable_all()
            .build()?;
        Ok(Bridge { runtime: Some(runtime) })
    }

    /// Starts a request without waiting for it.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        request: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        self.runtime.as_ref().expect("present until drop").spawn(request)
    }

    /// Runs a request and waits for its answer.
    pub(super) fn run<T: Send + 'static>(
        &self,
        request: impl Future<Output = object_store::Result<T>> + Send + 'static,
    ) -> object_store::Result<T> {
        let (send, receive) = mpsc::sync_channel(1);
        self.spawn(async move {
            let _ = send.send(request.await);
        });
        receive.recv().unwrap_or_else(|_| {
            // The client panicked; its message is on stderr already.
            Err(object_store::Error::Generic { store: "client", source: "request lost".into() })
        })
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // Waiting for the threads here would panic inside somebody else's runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
