//! What processes ask of the file system, seen before it happens.
//!
//! ```text
//! around.c: a filter in the process -> kernel -> listener, here -> gate -> "go on"
//! ```
//! The filter stops the calls that open, name and remove files. It goes over to children: an agent is
//! seen by the listener of the rank that has started it, also after that rank's death.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::gate::Gate;
use super::stage::Act;

/// Longer than the paths of any job here.
const PATH_BYTES: usize = 1024;

/// Watches a process and its children until all of them are gone. `listener`: its number there.
pub(super) fn watch(pid: u32, listener: RawFd, gate: &Arc<Gate>) -> io::Result<()> {
    let pid = Pid::from_raw(pid as i32).ok_or(Errno::SRCH)?;
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let listener = Arc::new(pidfd_getfd(&process, listener, PidfdGetfdFlags::empty())?);
    let gate = Arc::clone(gate);
    std::thread::spawn(move || {
        while let Ok(call) = next(&listener) {
            let meets = |(act, path): (Act, PathBuf)| gate.meets(act, &path.to_string_lossy());
            match call.as_ref().and_then(asked).is_some_and(meets) {
                false => call.iter().for_each(|call| go_on(&listener, call)),
                // Others of the same process are not held with it.
                true => {
                    let (listener, gate) = (Arc::clone(&listener), Arc::clone(&gate));
                    std::thread::spawn(move || {
                        gate.hold();
                        call.iter().for_each(|call| go_on(&listener, call));
                    });
                }
            }
        }
    });
    Ok(())
}

/// The next call; `None` if whoever made it is gone, an error when all are.
fn next(listener: &OwnedFd) -> io::Result<Option<libc::seccomp_notif>> {
    let mut wanted = [PollFd::new(listener, PollFlags::IN)];
    match poll(&mut wanted, None) {
        Err(Errno::INTR) => return Ok(None),
        polled => polled?,
    };
    if !wanted[0].revents().contains(PollFlags::IN) {
        return Err(Errno::CONNRESET.into());
    }
    // SAFETY: the struct is plain numbers, for all of which zero is a value.
    let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the listener is open and the kernel fills in the struct that it asks for.
    let outcome =
        unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) };
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        _ if outcome == 0 => Ok(Some(call)),
        Some(libc::ENOENT | libc::EINTR) => Ok(None),
        _ => Err(error),
    }
}

/// Lets a call happen.
fn go_on(listener: &OwnedFd, call: &libc::seccomp_notif) {
    let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
    let mut answer = libc::seccomp_notif_resp { id: call.id, val: 0, error: 0, flags };
    // SAFETY: the listener is open and the kernel only reads the struct. One that is gone meanwhile
    // needs no answer.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw mut answer) };
}

/// What a call asks for, if that can be found out.
fn asked(call: &libc::seccomp_notif) -> Option<(Act, PathBuf)> {
    let arguments = call.data.args;
    let (act, dir, path) = match i64::from(call.data.nr) {
        libc::SYS_openat if arguments[2] & libc::O_CREAT as u64 != 0 => {
            (Act::Make, arguments[0], arguments[1])
        }
        libc::SYS_openat => (Act::Read, arguments[0], arguments[1]),
        libc::SYS_unlinkat if arguments[2] == 0 => (Act::Remove, arguments[0], arguments[1]),
        libc::SYS_renameat | libc::SYS_renameat2 | libc::SYS_linkat => {
            (Act::Name, arguments[2], arguments[3])
        }
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink => (Act::Remove, libc::AT_FDCWD as u64, arguments[0]),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => (Act::Name, libc::AT_FDCWD as u64, arguments[1]),
        _ => return None,
    };
    Some((act, path_of(call.pid, dir, path)?))
}

fn path_of(pid: u32, dir: u64, at: u64) -> Option<PathBuf> {
    let process = Path::new("/proc").join(pid.to_string());
    let memory = std::fs::File::open(process.join("mem")).ok()?;
    let mut bytes = [0; PATH_BYTES];
    let read = memory.read_at(&mut bytes, at).ok()?;
    let end = bytes[..read].iter().position(|byte| *byte == 0)?;
    let path = PathBuf::from(std::str::from_utf8(&bytes[..end]).ok()?);
    if path.is_absolute() {
        return Some(path);
    }
    let dir = match dir as i32 {
        libc::AT_FDCWD => process.join("cwd"),
        number => process.join("fd").join(number.to_string()),
    };
    Some(std::fs::read_link(dir).ok()?.join(path))
}
