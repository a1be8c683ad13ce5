use super::*;

fn generic(source: impl Into<Box<dyn StdError + Send + Sync>>) -> ClientError {
    ClientError::Generic { store: "S3", source: source.into() }
}

#[test]
fn failures_keep_their_meaning() {
    let full = io::Error::from(io::ErrorKind::StorageFull);
    let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
    let http = |kind| HttpError::new(kind, io::Error::other("x"));
    for (error, expected) in [
        (generic("Server returned non-2xx status code: 503 Slow Down: "), Kind::Transient),
        (generic("Server returned non-2xx status code: 429: "), Kind::Transient),
        (generic("Server returned non-2xx status code: 507: "), Kind::Full),
        (generic("Server returned non-2xx status code: 400: "), Kind::Invalid),
        (generic("something else"), Kind::Io),
        (generic("status code: "), Kind::Io),
        (generic(full), Kind::Full),
        (generic(refused), Kind::Transient),
        (generic(http(HttpErrorKind::Timeout)), Kind::Transient),
        (generic(http(HttpErrorKind::Decode)), Kind::Io),
    ] {
        assert_eq!(kind(&error), expected, "{error}");
    }
    let source = || "x".into();
    let path = String::new;
    for (error, expected) in [
        (ClientError::NotFound { path: path(), source: source() }, Kind::Missing),
        (ClientError::AlreadyExists { path: path(), source: source() }, Kind::Busy),
        (ClientError::Precondition { path: path(), source: source() }, Kind::Missing),
        (ClientError::PermissionDenied { path: path(), source: source() }, Kind::Denied),
        (ClientError::NotSupported { source: source() }, Kind::Unsupported),
    ] {
        assert_eq!(of("read", "a", "s3://b", error).kind(), expected);
    }
}
