//! What the preload library's malloc costs against the mimalloc that it is built on.
//!
//! Data: the C program `mixed.c`, run in turns under `libstandfast_preload.so` and under a shared
//! library of plain mimalloc, compiled from the very same sources with the same options ->
//! [`Compared`]: seconds of each, and the ratio of the best.
//!
//! Why in turns, and why the best: what else happens on the machine then hits both alike, and only
//! ever makes them slower.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The measurement.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Threads that allocate.
    pub threads: usize,
    /// Seconds under the preload library, a value per turn.
    pub ours_s: Vec<f64>,
    /// Seconds under plain mimalloc.
    pub plain_s: Vec<f64>,
}

impl Compared {
    /// Time under our library by time under plain mimalloc: 1.1 is ten per cent slower.
    pub fn ratio(&self) -> f64 {
        best(&self.ours_s) / self.plain_best_s()
    }

    /// The best time under plain mimalloc.
    pub fn plain_best_s(&self) -> f64 {
        best(&self.plain_s)
    }
}

/// Measures with so many turns of so many rounds per thread. `library` is an optimised
/// `libstandfast_preload.so`.
pub fn compare(library: &Path, turns: usize, rounds: u64) -> Result<Compared> {
    let dir = tempfile::tempdir()?;
    let (plain, program) = (dir.path().join("libplain.so"), dir.path().join("mixed"));
    compile_plain(&plain)?;
    let source = dir.path().join("mixed.c");
    std::fs::write(&source, include_str!("mixed.c"))?;
    compile(Command::new("cc").args(["-O2", "-pthread"]).arg(source).arg("-o").arg(&program))?;
    let threads = std::thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 16));
    let mut compared = Compared { threads, ours_s: Vec::new(), plain_s: Vec::new() };
    for _ in 0..turns.max(1) {
        compared.plain_s.push(run(&program, &plain, threads, rounds)?);
        compared.ours_s.push(run(&program, library, threads, rounds)?);
    }
    Ok(compared)
}

/// The library, optimised, built now if the sources are newer than the last build.
pub fn library() -> Result<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--locked", "--release", "-q", "-p", "standfast-preload"]);
    compile(build.current_dir(&workspace))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(workspace.join("target"), Into::into);
    Ok(target.join("release/libstandfast_preload.so"))
}

fn compile_plain(to: &Path) -> Result<()> {
    let include = Path::new(env!("MIMALLOC_INCLUDE"));
    let sources = include.with_file_name("src");
    // As the build script of libmimalloc-sys does, and with the names of C.
    let options = [
        "-O3",
        "-fPIC",
        "-shared",
        "-pthread",
        "-ftls-model=initial-exec",
        "-fno-builtin-malloc",
        "-DMI_DEBUG=0",
        "-DMI_BUILD_RELEASE",
        "-DNDEBUG",
        "-DMI_MALLOC_OVERRIDE",
    ];
    let mut command = Command::new("cc");
    command.args(options).arg("-I").arg(include).arg("-I").arg(&sources);
    compile(command.arg(sources.join("static.c")).arg("-o").arg(to))
}

fn compile(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

fn run(program: &Path, library: &Path, threads: usize, rounds: u64) -> Result<f64> {
    let mut command = Command::new(program);
    command.args([threads.to_string(), rounds.to_string()]).env("LD_PRELOAD", library);
    let output = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(
        output.status.success() && output.stderr.is_empty(),
        "{command:?}: {} {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

fn best(seconds: &[f64]) -> f64 {
    seconds.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_that_of_the_best() {
        let compared =
            Compared { threads: 2, ours_s: vec![9.0, 2.2, 3.0], plain_s: vec![4.0, 2.0, 7.0] };
        assert!((compared.ratio() - 1.1).abs() < 1e-12);
    }

    #[test]
    fn plain_mimalloc_and_the_program_are_built_and_run() {
        let dir = tempfile::tempdir().unwrap();
        let plain = dir.path().join("plain.so");
        compile_plain(&plain).unwrap();
        let compared = compare(&plain, 1, 1000).unwrap();
        assert!(compared.ours_s[0] > 0.0 && compared.plain_s[0] > 0.0);
    }
}
