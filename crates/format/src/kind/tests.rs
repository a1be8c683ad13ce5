use super::*;

#[test]
fn codes_are_distinct_and_leave_the_low_ones_to_shells() {
    let mut codes: Vec<i32> = Kind::all().map(Kind::exit_code).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), TABLE.len());
    assert!(codes.iter().all(|code| (10..64).contains(code)));
    assert!(Kind::all().all(|kind| kind.c_code() == -kind.exit_code()));
    assert!(Kind::all().all(|kind| Kind::from_exit_code(kind.exit_code()) == Some(kind)));
}

/// Every number that a file system answers with. Only what proves something about stored bytes may
/// let a restart go back in time.
#[test]
fn operating_system_errors_keep_their_meaning() {
    for (errno, kind) in [
        (libc::ENOENT, Kind::Missing),
        (libc::EACCES, Kind::Denied),
        (libc::EPERM, Kind::Denied),
        (libc::EROFS, Kind::Denied),
        (libc::ENOSPC, Kind::Full),
        (libc::EDQUOT, Kind::Full),
        (libc::EFBIG, Kind::Full),
        (libc::EMFILE, Kind::Exhausted),
        (libc::ENFILE, Kind::Exhausted),
        (libc::ENOMEM, Kind::Exhausted),
        (libc::ENOBUFS, Kind::Exhausted),
        (libc::ENOLCK, Kind::Exhausted),
        (libc::EAGAIN, Kind::Transient),
        (libc::EINTR, Kind::Transient),
        (libc::ESTALE, Kind::Transient),
        (libc::ETIMEDOUT, Kind::Transient),
        (libc::EBUSY, Kind::Busy),
        (libc::EIO, Kind::Io),
        (libc::ENXIO, Kind::Io),
        (libc::ENODEV, Kind::Io),
        (libc::EUCLEAN, Kind::Io),
        (libc::ENOTDIR, Kind::Invalid),
        (libc::ELOOP, Kind::Invalid),
        (libc::ENAMETOOLONG, Kind::Invalid),
    ] {
        let found = Kind::of_io(&io::Error::from_raw_os_error(errno));
        assert_eq!(found, kind, "errno {errno}");
        assert_eq!(found.is_proof(), errno == libc::ENOENT, "errno {errno}");
    }
}
