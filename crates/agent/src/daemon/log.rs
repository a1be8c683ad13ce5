//! The agent's log: one JSON object per line, each with its time and what happened.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

/// Where lines go; shared by all threads.
#[derive(Clone)]
pub(crate) struct Log(Arc<Mutex<File>>);

impl Log {
    pub(crate) fn new(file: File) -> Self {
        Self(Arc::new(Mutex::new(file)))
    }

    /// Writes a line; `fields` is an object.
    pub(crate) fn event(&self, event: &str, mut fields: Value) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let object = fields.as_object_mut().expect("fields are an object");
        object.insert("event".into(), json!(event));
        object.insert("time_ms".into(), json!(since.as_millis() as u64));
        object.insert("pid".into(), json!(std::process::id()));
        let line = format!("{fields}\n");
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A log that cannot be written must not stop what it tells about.
        let _ = file.write_all(line.as_bytes());
    }
}
