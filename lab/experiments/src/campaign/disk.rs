//! The disks of a job's nodes: small file systems, where mounting is allowed.
//!
//! ```text
//! DISKS/n0, DISKS/n1, ...   a file system in memory each, which can be full
//! DISKS                     or one xfs for all of them, which can lose its power
//! ```
//! Elsewhere they are directories, and faults that need more are plain kills.

use standfast_testkit::command::until;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::bail;
use rustix::fs::FallocateFlags;

/// Room of a node's disk in memory.
const MEMORY_MIB: u32 = 48;
/// The least that xfs takes; its file has holes.
const XFS_MIB: u64 = 304;
/// Processes that were killed may take a moment to let go of their files.
const RELEASE_MAX: Duration = Duration::from_secs(10);

/// What the disks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Medium {
    Memory,
    Xfs,
}

/// Disks of so many nodes.
pub(super) struct Disks {
    dir: PathBuf,
    nodes: usize,
    /// `None`: nothing could be mounted.
    medium: Option<Medium>,
    /// What xfs lies on.
    image: PathBuf,
}

/// Takes all the room of a disk until it is dropped.
pub(super) struct Filler(PathBuf);

impl Drop for Filler {
    fn drop(&mut self) {
        // A disk that was wiped meanwhile has no filler.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Disks {
    /// Makes them below a directory.
    pub(super) fn make(below: &Path, nodes: usize, medium: Medium) -> anyhow::Result<Self> {
        let dir = below.join("disk");
        std::fs::create_dir_all(&dir)?;
        let image = below.join("image");
        let mut disks = Self { dir, nodes, medium: Some(medium), image };
        if medium == Medium::Xfs && !disks.make_xfs()? {
            disks.medium = None;
        }
        for node in 0..nodes {
            let disk = disks.of(node);
            std::fs::create_dir_all(&disk)?;
            let options = format!("size={MEMORY_MIB}m");
            if disks.medium == Some(Medium::Memory)
                && !run("mount", &["-t", "tmpfs", "-o", &options, "tmpfs"], &[&disk])
            {
                // The first one is refused as all are.
                disks.medium = None;
            }
        }
        Ok(disks)
    }

    fn make_xfs(&self) -> anyhow::Result<bool> {
        std::fs::File::create(&self.image)?.set_len(XFS_MIB << 20)?;
        Ok(run("mkfs.xfs", &["-q", "-f"], &[&self.image]) && self.mount_xfs())
    }

    fn mount_xfs(&self) -> bool {
        run("mount", &["-o", "loop"], &[&self.image, &self.dir])
    }

    /// Whether disks of this kind could be made.
    pub(super) fn are(&self, medium: Medium) -> bool {
        self.medium == Some(medium)
    }

    /// The names by which ranks know the disks of their nodes.
    pub(super) fn pattern(&self) -> PathBuf {
        self.dir.join("{node}")
    }

    pub(super) fn of(&self, node: usize) -> PathBuf {
        self.dir.join(format!("n{node}"))
    }

    /// Takes the power away: what was not made durable is lost, and every later access fails.
    pub(super) fn power_off(&self) {
        if self.medium == Some(Medium::Xfs) {
            run("xfs_io", &["-x", "-c", "shutdown"], &[&self.dir]);
        }
    }

    /// The power comes back; nobody may be using the disks.
    pub(super) fn power_on(&self) -> anyhow::Result<()> {
        if self.medium != Some(Medium::Xfs) {
            return Ok(());
        }
        if !until(RELEASE_MAX, || run("umount", &[], &[&self.dir])) {
            bail!("somebody still uses {}", self.dir.display());
        }
        if !self.mount_xfs() {
            bail!("{} cannot be mounted any more", self.image.display());
        }
        // That one was removed may have been lost with the power.
        (0..self.nodes).for_each(|node| drop(Filler(self.filler(node))));
        Ok(())
    }

    /// A node comes back with an empty disk.
    pub(super) fn wipe(&self, node: usize) -> anyhow::Result<()> {
        for entry in std::fs::read_dir(self.of(node))? {
            let path = entry?.path();
            match path.is_dir() {
                true => std::fs::remove_dir_all(&path)?,
                false => std::fs::remove_file(&path)?,
            }
        }
        Ok(())
    }

    fn filler(&self, node: usize) -> PathBuf {
        self.of(node).join("filler")
    }

    /// Takes all the room on a node's disk, where it has a file system to itself or with the others.
    pub(super) fn fill(&self, node: usize) -> Filler {
        let path = self.filler(node);
        // One that takes no more file is full already.
        if let Some(file) = self.medium.and_then(|_| std::fs::File::create(&path).ok()) {
            let (mut at, mut piece) = (0, 8 << 20);
            // Until nothing more fits.
            while piece >= 4096 {
                match rustix::fs::fallocate(&file, FallocateFlags::empty(), at, piece) {
                    Ok(()) => at += piece,
                    Err(_) => piece /= 2,
                }
            }
        }
        Filler(path)
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        let mounted: Vec<PathBuf> = match self.medium {
            None => Vec::new(),
            Some(Medium::Xfs) => vec![self.dir.clone()],
            Some(Medium::Memory) => (0..self.nodes).map(|node| self.of(node)).collect(),
        };
        for dir in mounted {
            // Lazily: a child that is about to die may still have a file open.
            run("umount", &["-l"], &[&dir]);
        }
    }
}

/// Runs a tool of the administrator without a word; whether it did what it should.
fn run(command: &str, words: &[&str], paths: &[&Path]) -> bool {
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(command);
    command.args(words).args(paths).env("PATH", path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
