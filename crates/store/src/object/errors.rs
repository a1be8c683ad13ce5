//! From the client's errors to kinds.
//!
//! Why the text is read: the client says "generic" for most failures of the service and keeps
//! the status only in the message of a private type.

use std::error::Error as StdError;
use std::io;

use object_store::Error as ClientError;
use object_store::client::{HttpError, HttpErrorKind};
use standfast_format::Kind;

use crate::error::{Error, Object};

/// What the client's failure means to our callers.
pub(super) fn of(op: &'static str, name: &str, described: &str, source: ClientError) -> Error {
    let store = described.to_owned();
    let object = if name.is_empty() { "." } else { name }.to_owned();
    match source {
        ClientError::NotFound { .. } => Error::Missing(Object::new(object, store)),
        ClientError::AlreadyExists { .. } => Error::Exists(Object::new(object, store)),
        source => {
            let kind = kind(&source);
            Error::Backend { op, object, store, kind, source: Box::new(source) }
        }
    }
}

fn kind(error: &ClientError) -> Kind {
    match error {
        ClientError::NotFound { .. } => Kind::Missing,
        // Only reads are conditional on a version: the one that was opened is gone.
        ClientError::Precondition { .. } => Kind::Missing,
        ClientError::AlreadyExists { .. } => Kind::Busy,
        ClientError::PermissionDenied { .. } | ClientError::Unauthenticated { .. } => Kind::Denied,
        ClientError::NotSupported { .. } | ClientError::NotImplemented { .. } => Kind::Unsupported,
        ClientError::InvalidPath { .. } | ClientError::UnknownConfigurationKey { .. } => {
            Kind::Invalid
        }
        other => kind_of_causes(other),
    }
}

/// The first cause that says something: a system error, a failed connection, an HTTP status.
fn kind_of_causes(error: &(dyn StdError + 'static)) -> Kind {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Kind::of_io(error);
        }
        if let Some(error) = error.downcast_ref::<HttpError>() {
            return match error.kind() {
                HttpErrorKind::Decode | HttpErrorKind::Unknown => Kind::Io,
                _ => Kind::Transient,
            };
        }
        if let Some(kind) = status(&error.to_string()).map(kind_of_status) {
            return kind;
        }
        cause = error.source();
    }
    Kind::Io
}

/// The number after "status code: ", as the client words it.
fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("status code: ")?;
    rest.get(..3)?.parse().ok()
}

fn kind_of_status(status: u16) -> Kind {
    match status {
        401 | 403 => Kind::Denied,
        404 => Kind::Missing,
        409 | 412 => Kind::Busy,
        408 | 429 | 500 | 502..=504 => Kind::Transient,
        501 => Kind::Unsupported,
        507 => Kind::Full,
        400..=499 => Kind::Invalid,
        _ => Kind::Io,
    }
}

#[cfg(test)]
mod tests;
