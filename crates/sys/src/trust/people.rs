//! Users and groups by the system's own database, which may be a service on the network: answers that
//! files are checked with are asked for once.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, PoisonError};

use rustix::process::{getegid, geteuid, getgroups};

/// Space for the texts of one entry at first, and at most.
const ENTRY_BYTES: usize = 1 << 12;
const ENTRY_BYTES_MAX: usize = 1 << 22;
/// Most groups of a user that are looked at.
const GROUPS_MAX: usize = 1 << 16;

struct User {
    name: CString,
    group: u32,
}

struct Group {
    name: CString,
    members: Vec<CString>,
}

/// The number of a user, by name or number.
pub fn uid_of(user: &str) -> Option<u32> {
    let name = CString::new(user).ok()?;
    // SAFETY: the name ends in a zero; the others are as `entry` gives them.
    let ask = |at: *mut libc::passwd, text: *mut libc::c_char, bytes, found: *mut _| unsafe {
        libc::getpwnam_r(name.as_ptr(), at, text, bytes, found)
    };
    entry(ask, |found: &libc::passwd| found.pw_uid).or_else(|| user.parse().ok())
}

/// The number of a group, by name or number.
pub fn gid_of(group: &str) -> Option<u32> {
    let name = CString::new(group).ok()?;
    // SAFETY: as above.
    let ask = |at: *mut libc::group, text: *mut libc::c_char, bytes, found: *mut _| unsafe {
        libc::getgrnam_r(name.as_ptr(), at, text, bytes, found)
    };
    entry(ask, |found: &libc::group| found.gr_gid).or_else(|| group.parse().ok())
}

/// Whether this process may give its files to a group.
pub fn is_in_group(group: u32) -> bool {
    geteuid().is_root()
        || getegid().as_raw() == group
        || getgroups().is_ok_and(|groups| groups.iter().any(|one| one.as_raw() == group))
}

/// `nobody (uid 65534)`.
pub(super) fn user(uid: u32) -> String {
    find_user(uid).map_or_else(|| format!("uid {uid}"), |user| text(&user.name, "uid", uid))
}

/// What names a user in a setting.
pub(super) fn user_word(uid: u32) -> String {
    find_user(uid).map_or_else(|| uid.to_string(), |user| user.name.to_string_lossy().into_owned())
}

/// `group nogroup (gid 65534)`.
pub(super) fn group(gid: u32) -> String {
    let named = find_group(gid).map(|group| format!("group {}", text(&group.name, "gid", gid)));
    named.unwrap_or_else(|| format!("gid {gid}"))
}

fn text(name: &CStr, what: &str, number: u32) -> String {
    format!("{} ({what} {number})", name.to_string_lossy())
}

/// Whether a user is in a group. The group of a file does not tell: in a directory with the set-group-id
/// bit anybody's files get the directory's.
pub(super) fn is_member(uid: u32, gid: u32) -> bool {
    static KNOWN: Known = Mutex::new(None);
    once(&KNOWN, (uid, gid), || {
        let Some(user) = find_user(uid) else { return false };
        groups(&user).contains(&gid)
    })
}

/// Whether a group has this user for its only member: then who may write by it is the user.
pub(super) fn is_private_group(uid: u32, gid: u32) -> bool {
    static KNOWN: Known = Mutex::new(None);
    once(&KNOWN, (uid, gid), || {
        let (Some(user), Some(group)) = (find_user(uid), find_group(gid)) else { return false };
        let is_own = user.group == gid && user.name == group.name;
        is_own && group.members.iter().all(|member| *member == user.name)
    })
}

type Known = Mutex<Option<HashMap<(u32, u32), bool>>>;

fn once(known: &Known, asked: (u32, u32), find: impl FnOnce() -> bool) -> bool {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    *known.get_or_insert_default().entry(asked).or_insert_with(find)
}

fn find_user(uid: u32) -> Option<User> {
    // SAFETY: as `entry` gives them.
    let ask = |at: *mut libc::passwd, text: *mut libc::c_char, bytes, found: *mut _| unsafe {
        libc::getpwuid_r(uid, at, text, bytes, found)
    };
    entry(ask, |found: &libc::passwd| User {
        // SAFETY: the name of an entry that was found ends in a zero.
        name: unsafe { CStr::from_ptr(found.pw_name) }.to_owned(),
        group: found.pw_gid,
    })
}

fn find_group(gid: u32) -> Option<Group> {
    // SAFETY: as `entry` gives them.
    let ask = |at: *mut libc::group, text: *mut libc::c_char, bytes, found: *mut _| unsafe {
        libc::getgrgid_r(gid, at, text, bytes, found)
    };
    entry(ask, |found: &libc::group| {
        // SAFETY: the name of an entry that was found ends in a zero.
        let name = unsafe { CStr::from_ptr(found.gr_name) }.to_owned();
        let mut members = Vec::new();
        let mut next = found.gr_mem;
        // SAFETY: the list of members ends in a null pointer, and each is a text that ends in a zero.
        while let Some(member) = unsafe { next.as_ref() }.filter(|member| !member.is_null()) {
            // SAFETY: as above.
            members.push(unsafe { CStr::from_ptr(*member) }.to_owned());
            // SAFETY: this one was not the end of the list.
            next = unsafe { next.add(1) };
        }
        Group { name, members }
    })
}

/// All groups of a user.
fn groups(user: &User) -> Vec<u32> {
    let mut groups = vec![0; 64];
    loop {
        let mut count = groups.len() as libc::c_int;
        // SAFETY: the name ends in a zero, and there is room for so many groups.
        let found = unsafe {
            libc::getgrouplist(user.name.as_ptr(), user.group, groups.as_mut_ptr(), &mut count)
        };
        if found >= 0 || groups.len() >= GROUPS_MAX {
            groups.truncate(usize::try_from(count).unwrap_or(0).min(groups.len()));
            return groups;
        }
        groups.resize(groups.len() * 4, 0);
    }
}

/// Asks for an entry of type `E`: `ask` gets where it goes, space for its texts, and where the answer
/// is told.
fn entry<E, T>(
    ask: impl Fn(*mut E, *mut libc::c_char, usize, *mut *mut E) -> libc::c_int,
    take: impl FnOnce(&E) -> T,
) -> Option<T> {
    let mut text = vec![0; ENTRY_BYTES];
    loop {
        let (mut at, mut found) = (std::mem::MaybeUninit::<E>::uninit(), std::ptr::null_mut());
        match ask(at.as_mut_ptr(), text.as_mut_ptr(), text.len(), &mut found) {
            libc::ERANGE if text.len() < ENTRY_BYTES_MAX => text.resize(text.len() * 4, 0),
            libc::EINTR => {}
            // SAFETY: what was found is in `at`, with its texts in `text`; both are still there.
            0 => return unsafe { found.as_ref() }.map(take),
            _ => return None,
        }
    }
}
