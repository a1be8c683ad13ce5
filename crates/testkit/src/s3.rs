//! A real S3 server as a process of its own: SeaweedFS, on this machine only, on fresh ports.
//!
//! ```text
//! DIR/data        what it stores; outlives a kill
//! DIR/s3.json     who may use it
//! DIR/log         what it says
//! ```
//! `scripts/deps.sh test` puts the program below the target directory; `STANDFAST_TEST_WEED` names
//! another one. Where there is none, [`S3Server::start`] says so and tests are skipped.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const KEY: &str = "standfast";
const SECRET: &str = "standfast-secret";
const BUCKET: &str = "checkpoints";
/// How long it may take to answer. Loaded machines are slow.
const READY_MAX: Duration = Duration::from_secs(60);
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
        own.ancestors().map(|above| above.join("s3/bin/weed")).find(|path| path.is_file())
    }

    /// Starts one on an empty directory; `None`, with a word on stderr, where none is installed.
    pub fn start(dir: &Path) -> Option<Self> {
        let Some(program) = Self::program() else {
            eprintln!("skipped: no S3 server is installed (scripts/deps.sh test does it)");
            return None;
        };
        let ports = free_ports().expect("four free ports");
        let mut server = Self { program, dir: dir.to_owned(), ports, child: None };
        server.prepare().expect("an S3 server can be prepared");
        server.start_again();
        server.make_bucket();
        Some(server)
    }

    fn prepare(&self) -> io::Result<()> {
        std::fs::create_dir_all(self.dir.join("data"))?;
        let who = format!(
            r#"{{"identities": [{{"name": "test", "credentials": [{{"accessKey": "{KEY}", "secretKey": "{SECRET}"}}], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}}]}}"#
        );
        std::fs::write(self.dir.join("s3.json"), who)
    }

    /// Starts it again on what it had stored, and waits until it answers.
    pub fn start_again(&mut self) {
        assert!(self.child.is_none(), "it runs already");
        let Ports { master, volume, filer, s3 } = self.ports;
        let log = File::create(self.dir.join("log")).expect("its log can be written");
        let child = Command::new(&self.program)
            .current_dir(&self.dir)
            .arg("server")
            .args(["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-dir=data", "-s3"])
            .args([format!("-master.port={master}"), format!("-volume.port={volume}")])
            .args([format!("-filer.port={filer}"), format!("-s3.port={s3}")])
            .args(["-s3.config=s3.json", "-master.volumeSizeLimitMB=64", "-volume.max=100"])
            // Services on fixed ports that nobody needs here, and reports to its makers.
            .args(["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("one file"))
            .stderr(log)
            .spawn()
            .expect("the S3 server can be started");
        self.child = Some(child);
        let end = Instant::now() + READY_MAX;
        // The volume server registers last; before that nothing can be written.
        while !self.answers() {
            assert!(Instant::now() < end, "the S3 server does not answer: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn answers(&self) -> bool {
        let ready = |port, path: &str| {
            ask(port, "GET", path).is_ok_and(|answer| answer.starts_with("HTTP/1.1 "))
        };
        let free = ask(self.ports.master, "GET", "/dir/assign");
        ready(self.ports.s3, "/") && free.is_ok_and(|answer| answer.contains("\"fid\""))
    }

    fn make_bucket(&self) {
        let end = Instant::now() + READY_MAX;
        loop {
            let made = ask(self.ports.filer, "POST", &format!("/buckets/{BUCKET}/"));
            if made.is_ok_and(|answer| answer.starts_with("HTTP/1.1 201")) {
                return;
            }
            assert!(Instant::now() < end, "the S3 server makes no bucket: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
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
