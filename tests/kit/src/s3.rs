//! A real S3 server as a process of its own: SeaweedFS, on this machine only, on fresh ports.
//!
//! ```text
//! DIR/data        what it stores; outlives a kill
//! DIR/s3.json     who may use it
//! DIR/log         what it says
//! ```
//! `scripts/deps.sh` puts the program below the target directory; `STANDFAST_TEST_WEED` names
//! another one. Where there is none, [`S3Server::start`] says so and tests are skipped.
//!
//! Invariants:
//! - Nobody but this machine reaches it, and it dies with the thread that has started it.
//!
//! What this is not: a place for anything that shall last.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::must::leave_out;

const KEY: &str = "standfast";
const SECRET: &str = "standfast-secret";
const BUCKET: &str = "checkpoints";
/// How long it may take to answer. Loaded machines are slow.
const READY_MAX: Duration = Duration::from_secs(60);
/// How often it is started again at most.
const STARTS_MAX: u32 = 10;
/// The server adds this to each port for a second one.
const SECOND: u16 = 10_000;

/// Ports of the parts of the server.
#[derive(Clone, Copy, Debug)]
struct Ports {
    master: u16,
    volume: u16,
    filer: u16,
    s3: u16,
}

/// A running server; dropping it kills it. Its directory stays with whoever made it.
pub struct S3Server {
    program: PathBuf,
    dir: PathBuf,
    ports: Ports,
    child: Option<Child>,
}

impl S3Server {
    /// The server's program, if it is installed.
    pub fn program() -> Option<PathBuf> {
        if let Some(named) = std::env::var_os("STANDFAST_TEST_WEED") {
            return Some(named.into()).filter(|path: &PathBuf| path.is_file());
        }
        // This program lies in the target directory or deeper.
        let own = std::env::current_exe().ok()?;
        let below_target = own.ancestors().map(|above| above.join("s3/bin/weed"));
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let in_path = std::env::split_paths(&paths).map(|dir| dir.join("weed"));
        below_target.chain(in_path).find(|path| path.is_file())
    }

    /// Starts one on an empty directory, for tests; `None`, with a word on stderr, where none is
    /// installed.
    ///
    /// # Panics
    /// If it is installed and does not start.
    pub fn start(dir: &Path) -> Option<Self> {
        let Some(program) = Self::program() else {
            leave_out("s3", "no S3 server is installed (scripts/deps.sh test does it)");
            return None;
        };
        Some(Self::launch(program, dir).unwrap_or_else(|error| panic!("the S3 server: {error}")))
    }

    /// Starts a given program on an empty directory, and returns when a bucket can be written to.
    pub fn launch(program: PathBuf, dir: &Path) -> io::Result<Self> {
        let ports = free_ports()?;
        let mut server = Self { program, dir: dir.to_owned(), ports, child: None };
        server.prepare()?;
        server.spawn()?;
        server.make_bucket()?;
        Ok(server)
    }

    fn prepare(&self) -> io::Result<()> {
        std::fs::create_dir_all(self.dir.join("data"))?;
        let who = format!(
            r#"{{"identities": [{{"name": "test", "credentials": [{{"accessKey": "{KEY}", "secretKey": "{SECRET}"}}], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}}]}}"#
        );
        std::fs::write(self.dir.join("s3.json"), who)
    }

    /// Starts it again on what it had stored, and waits until it answers; for tests.
    ///
    /// # Panics
    /// If it runs already, or does not start.
    pub fn start_again(&mut self) {
        assert!(self.child.is_none(), "it runs already");
        for left in (0..STARTS_MAX).rev() {
            match self.spawn() {
                Ok(()) => return,
                Err(error) if left == 0 => panic!("the S3 server: {error}"),
                // While it was down somebody else may have used one of its ports.
                Err(_) => self.kill(),
            }
            std::thread::sleep(Duration::from_secs(1));
        }
    }

    fn spawn(&mut self) -> io::Result<()> {
        let Ports { master, volume, filer, s3 } = self.ports;
        let log = File::create(self.dir.join("log"))?;
        let mut command = Command::new(&self.program);
        command
            .current_dir(&self.dir)
            .env("TMPDIR", &self.dir)
            .arg("server")
            .args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir=data", "-s3"])
            .args([format!("-master.port={master}"), format!("-volume.port={volume}")])
            .args([format!("-filer.port={filer}"), format!("-s3.port={s3}")])
            .args(["-s3.config=s3.json", "-master.volumeSizeLimitMB=64", "-volume.max=100"])
            // Services on fixed ports that nobody needs here, and reports to its makers.
            .args(["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // An interrupt at the terminal is for whoever has started it, and ends it in time.
            .process_group(0);
        let with_us = Some(rustix::process::Signal::KILL);
        // SAFETY: one system call between fork and exec.
        unsafe {
            command
                .pre_exec(move || Ok(rustix::process::set_parent_process_death_signal(with_us)?));
        }
        self.child = Some(command.spawn()?);
        // The volume server registers last; before that nothing can be written.
        self.until("does not answer", Self::answers)
    }

    fn answers(&self) -> bool {
        let ready = |port, path: &str| {
            ask(port, "GET", path).is_ok_and(|answer| answer.starts_with("HTTP/1.1 "))
        };
        let free = ask(self.ports.master, "GET", "/dir/assign");
        ready(self.ports.s3, "/") && free.is_ok_and(|answer| answer.contains("\"fid\""))
    }

    fn make_bucket(&mut self) -> io::Result<()> {
        self.until("makes no bucket", |server| {
            let made = ask(server.ports.filer, "POST", &format!("/buckets/{BUCKET}/"));
            made.is_ok_and(|answer| answer.starts_with("HTTP/1.1 201"))
        })
    }

    /// Waits for something that a starting server does in the end.
    fn until(&mut self, failure: &str, done: impl Fn(&Self) -> bool) -> io::Result<()> {
        let end = Instant::now() + READY_MAX;
        while !done(self) {
            let ended = match &mut self.child {
                Some(child) => child.try_wait()?,
                None => None,
            };
            if ended.is_some() || Instant::now() > end {
                return Err(io::Error::other(format!("it {failure}: {}", self.log())));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// What it has said, for messages.
    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }

    /// Kills it at once, as a power cut of its machine would, but for what the disk holds.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
            self.remove_sockets();
        }
    }

    /// Removes the sockets that it makes in /tmp, wherever its directory is; their names have its
    /// ports, so they are nobody else's.
    fn remove_sockets(&self) {
        let Ports { master, volume, filer, s3 } = self.ports;
        let second = [("filer", filer), ("s3", s3), ("master", master), ("volume", volume)]
            .map(|(part, port)| format!("{part}-grpc-{}", port + SECOND));
        let first = [format!("filer-{filer}"), format!("s3-{s3}")];
        for name in first.iter().chain(&second) {
            // Not every version makes all of them.
            let _ = std::fs::remove_file(format!("/tmp/seaweedfs-{name}.sock"));
        }
    }

    /// A place in its bucket.
    pub fn url(&self, prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}")
    }

    /// What a process that uses it needs in its environment.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        self.environment_at(self.ports.s3)
    }

    /// The same for whoever reaches it at another port: through something that slows it down.
    pub fn environment_at(&self, port: u16) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ACCESS_KEY_ID", KEY.into()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ENDPOINT", format!("http://127.0.0.1:{port}")),
            ("AWS_ALLOW_HTTP", "true".into()),
        ]
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.ports.s3
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a request without a body, and returns the answer.
fn ask(port: u16, method: &str, path: &str) -> io::Result<String> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(1 << 20).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Four ports that are free now, and whose second ones are.
fn free_ports() -> io::Result<Ports> {
    let mut held = Vec::new();
    let mut ports = Vec::new();
    while ports.len() < 4 {
        let one = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = one.local_addr()?.port();
        // Below those that the system deals out to others meanwhile, and so the second one.
        let low = 10_000 + port % 12_000;
        let pair = TcpListener::bind((Ipv4Addr::LOCALHOST, low)).and_then(|low_one| {
            Ok((low_one, TcpListener::bind((Ipv4Addr::LOCALHOST, low + SECOND))?))
        });
        if let Ok(pair) = pair {
            ports.push(low);
            held.push(pair);
        }
    }
    Ok(Ports { master: ports[0], volume: ports[1], filer: ports[2], s3: ports[3] })
}
