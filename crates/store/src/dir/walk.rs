//! Walking the tree: what is an object, what is a leftover, what is somebody else's.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::part;
use super::tree::Tree;
use crate::contract::ObjectMeta;
use crate::error::Result;
use crate::name::{NAME_BYTES_MAX, is_valid, part_is_valid};

/// The objects below `prefix`, sorted by name.
pub(super) fn objects(tree: &Tree, prefix: &str) -> Result<Vec<ObjectMeta>> {
    let mut found = Vec::new();
    visit(tree, prefix, &mut Vec::new(), &mut |_, _, name, stat| {
        if is_valid(name) {
            let bytes = u64::try_from(stat.st_size).unwrap_or(0);
            found.push(ObjectMeta { name: name.to_owned(), bytes });
        }
        Ok(())
    })?;
    found.sort_unstable();
    Ok(found)
}

/// Removes the part files that no living writer holds, and directories that nothing is left in; the
/// bytes that came back.
pub(super) fn discard_parts(tree: &Tree) -> Result<u64> {
    let mut freed = 0;
    let mut directories = Vec::new();
    visit(tree, "", &mut directories, &mut |dir, file_name, name, stat| {
        if part::is_part(file_name) && !is_held(dir, file_name) {
            match rustix::fs::unlinkat(dir, file_name, AtFlags::empty()) {
                Ok(()) => freed += u64::try_from(stat.st_blocks).unwrap_or(0) * 512,
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(tree.os("remove", name)(errno)),
            }
        }
        Ok(())
    })?;
    directories.iter().for_each(|path| tree.remove_if_empty(path));
    Ok(freed)
}

/// A living writer holds its part file with flock, in whatever process it is.
fn is_held(dir: &OwnedFd, file_name: &str) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    // What cannot be opened now may be somebody's: it stays.
    let Ok(file) = rustix::fs::openat(dir, file_name, flags, Mode::empty()) else { return true };
    let taken = rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared);
    taken == Err(Errno::WOULDBLOCK)
}

type Visitor<'v> = &'v mut dyn FnMut(&OwnedFd, &str, &str, Stat) -> Result<()>;

/// Calls `visitor(directory, file name, name below the root, stat)` for every plain file; adds the
/// directories, deepest first.
/// Links, devices and names that are not UTF-8 are skipped; so is anything nested deeper
/// than a name can say, which bounds the recursion.
fn visit(
    tree: &Tree,
    path: &str,
    directories: &mut Vec<String>,
    visitor: Visitor<'_>,
) -> Result<()> {
    let Some(dir) = tree.directory(path)? else { return Ok(()) };
    let entries = Dir::read_from(&*dir).map_err(tree.os("list", path))?;
    for entry in entries {
        let entry = entry.map_err(tree.os("list", path))?;
        let Ok(file_name) = entry.file_name().to_str() else { continue };
        if matches!(file_name, "." | "..") {
            continue;
        }
        let name =
            if path.is_empty() { file_name.to_owned() } else { format!("{path}/{file_name}") };
        let stat = match rustix::fs::statat(&*dir, file_name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => continue, // Removed meanwhile.
            Err(errno) => return Err(tree.os("look up", &name)(errno)),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => visitor(&dir, file_name, &name, stat)?,
            FileType::Directory if part_is_valid(file_name) && name.len() < NAME_BYTES_MAX => {
                visit(tree, &name, directories, visitor)?;
                directories.push(name);
            }
            _ => {}
        }
    }
    Ok(())
}
