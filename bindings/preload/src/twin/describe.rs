//! The description of the process and the list of its memory.
//!
//! Invariants:
//! - What cannot come back makes the checkpoint fail, with its name: memory shared with others,
//!   files that are gone.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use standfast_launch::digest;
use standfast_launch::plan::{ANONYMOUS, Draft, FILE, HEAP, Mapping, OpenFile, Piece, STACK, Text};

use super::pages::Pages;
use super::volatile::Copies;
use crate::control::Control;
use crate::maps::Line;

/// The description, and where each piece's contents can be read.
pub(super) struct Described {
    pub(super) draft: Draft,
    pub(super) sources: Vec<*mut u8>,
}

pub(super) fn describe(control: &Control, copies: &Copies) -> Result<Described, String> {
    let mut draft = Draft::new(4096);
    draft.header.tid_offset = control.tid_offset as u64;
    draft.header.actions = control.actions;
    let cwd = std::env::current_dir().map_err(|error| format!("working directory: {error}"))?;
    draft.header.cwd = draft.keep(cwd.as_os_str().as_bytes());
    let slots = &control.slots[..control.slots_len];
    let live = |(at, slot): &(usize, &crate::control::Slot)| {
        *at == 0 || slot.tid.load(Ordering::Relaxed) != 0
    };
    draft.threads = slots.iter().enumerate().filter(live).map(|(_, slot)| slot.thread).collect();
    for file in &control.files[..control.files_len] {
        let pid = control.process.load(Ordering::Relaxed);
        describe_file(&mut draft, pid, file.fd, file.flags, file.position);
    }
    let mut described = Described { draft, sources: Vec::new() };
    let mut known = HashMap::new();
    let pages = Pages::open().map_err(|error| format!("/proc/self/pagemap: {error}"))?;
    for line in copies.lines() {
        described.take_in(&line, copies, &pages, &mut known)?;
    }
    Ok(described)
}

/// Ordinary files come back by their path; anything else does not.
fn describe_file(draft: &mut Draft, pid: i32, fd: u32, flags: u32, position: u64) {
    let Ok(path) = std::fs::read_link(format!("/proc/self/fd/{fd}")) else { return };
    let path = of_any_process(path, pid);
    if std::fs::metadata(&path).is_ok_and(|metadata| metadata.is_file()) {
        let path = draft.keep(path.as_os_str().as_bytes());
        draft.files.push(OpenFile { fd, flags, position, path });
    }
}

/// What the kernel tells a process about itself is found under another number when it comes back.
fn of_any_process(path: PathBuf, pid: i32) -> PathBuf {
    match path.strip_prefix(format!("/proc/{pid}")) {
        Ok(rest) => Path::new("/proc/self").join(rest),
        Err(_) => path,
    }
}

/// A mapped file: where its name is kept, and its digest.
type Known = HashMap<&'static [u8], (Text, [u8; 32])>;

impl Described {
    fn take_in(
        &mut self,
        line: &Line<'static>,
        copies: &Copies,
        pages: &Pages,
        known: &mut Known,
    ) -> Result<(), String> {
        if line.is_kernel() {
            if line.name == b"[vdso]" {
                self.draft.header.vdso = line.start as u64;
            }
            return Ok(());
        }
        let name = String::from_utf8_lossy(line.name);
        if line.shared && (line.prot & libc::PROT_WRITE != 0 || !line.has_file()) {
            return Err(format!("the program shares memory with others ({name})"));
        }
        let (kind, (path, digest)) = match line.name {
            _ if line.has_file() => (FILE, self.file(line.name, known)?),
            b"[heap]" => (HEAP, Default::default()),
            b"[stack]" => (STACK, Default::default()),
            _ => (ANONYMOUS, Default::default()),
        };
        if kind == HEAP {
            self.draft.header.brk = line.end as u64;
        }
        let (start, end, offset) = (line.start as u64, line.end as u64, line.offset);
        let prot = line.prot as u32;
        self.draft.mappings.push(Mapping { start, end, offset, prot, kind, path, digest });
        if line.shared || line.prot & libc::PROT_READ == 0 {
            return Ok(());
        }
        let runs = pages.own(line.start..line.end).map_err(|error| format!("{name}: {error}"))?;
        for (part, source) in runs.into_iter().flat_map(|run| copies.parts(run)) {
            let (start, bytes) = (part.start as u64, part.len() as u64);
            self.draft.pieces.push(Piece { start, bytes, from: 0 });
            self.sources.push(source);
        }
        Ok(())
    }

    fn file(&mut self, name: &'static [u8], known: &mut Known) -> Result<(Text, [u8; 32]), String> {
        if let Some(found) = known.get(name) {
            return Ok(*found);
        }
        let path = Path::new(OsStr::from_bytes(name));
        let digest = digest(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let found = (self.draft.keep(name), digest);
        known.insert(name, found);
        Ok(found)
    }
}
