//! File systems made for one test: small, and gone afterwards.
//!
//! Needs the right to mount. Where that or a tool is missing, the test says so and passes:
//! [`Mounted::tmpfs`] and [`Mounted::image`] return the reason.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system; dropping it unmounts it, and with it goes its loop device.
pub struct Mounted {
    dir: tempfile::TempDir,
    /// The device's file, for file systems that are more than memory.
    image: Option<PathBuf>,
}

impl Mounted {
    /// A file system in memory of so many MiB.
    pub fn tmpfs(mib: u32) -> Result<Self, String> {
        let mounted = Self { dir: directory()?, image: None };
        let options = format!("size={mib}m");
        run("mount", &["-t", "tmpfs", "-o", &options, "tmpfs", text(mounted.path())])?;
        Ok(mounted)
    }

    /// A file system of a kind (`xfs`, `ext4`) on a file of so many MiB.
    pub fn image(kind: &str, mib: u64, file: &Path) -> Result<Self, String> {
        let made = std::fs::File::create(file).and_then(|file| file.set_len(mib << 20));
        made.map_err(|error| error.to_string())?;
        let force = if kind == "xfs" { "-f" } else { "-F" };
        run(&format!("mkfs.{kind}"), &["-q", force, text(file)])?;
        let mounted = Self { dir: directory()?, image: Some(file.to_owned()) };
        mounted.mount()?;
        Ok(mounted)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Makes it read-only, or writable again.
    pub fn set_read_only(&self, read_only: bool) {
        let mode = if read_only { "remount,ro" } else { "remount,rw" };
        run("mount", &["-o", mode, text(self.path())]).expect("what is mounted can be remounted");
    }

    /// Takes the power away: what was not made durable is lost. Every later access fails.
    pub fn power_off(&self) -> Result<(), String> {
        run("xfs_io", &["-x", "-c", "shutdown", text(self.path())])
    }

    /// The power comes back.
    pub fn power_on(&self) {
        run("umount", &[text(self.path())]).expect("nobody uses it any more");
        self.mount().expect("it could be mounted before");
    }

    fn mount(&self) -> Result<(), String> {
        let image = self.image.as_deref().expect("only images are mounted again");
        run("mount", &["-o", "loop", text(image), text(self.path())])
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: a child that is about to die may still have a file open.
        if run("mountpoint", &["-q", text(self.path())]).is_ok()
            && let Err(error) = run("umount", &["-l", text(self.path())])
        {
            eprintln!("{} stays mounted: {error}", self.path().display());
        }
    }
}

fn directory() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|error| error.to_string())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}

/// Runs a command; its last words are the error.
fn run(command: &str, arguments: &[&str]) -> Result<(), String> {
    // Tools of the administrator are not on everybody's path.
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let output = Command::new(command)
        .args(arguments)
        .env("PATH", path)
        .output()
        .map_err(|error| format!("{command}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command} {}: {}", arguments.join(" "), words.trim()))
}
