//! Hosts on one machine: each has a network, a host name, processes and a disk of its own.
//!
//! ```text
//! switch: a network namespace with a bridge; the launcher runs there
//! host:   network, mounts, host name, processes; a cable to the bridge; `disk` is its own directory
//! ```
//! Namespaces have no names and are held by processes only: whoever dies takes his with him, cable
//! included. Addresses exist inside of them and nowhere else.
//!
//! Invariants:
//! - A host's first process is its machine: killing it kills everything on the host at once.
//! - Everything dies with this process, also if it is killed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use standfast_testkit::command::{die_with_us, kill};

/// The network, known to no other one.
pub(super) const NETWORK: &str = "10.77.0.0/24";
/// Every host's own directory, at the same path on each.
const DISK: &str = "disk";
/// How long a host may take to start, or to clean up.
const PATIENCE: Duration = Duration::from_secs(30);

/// The machines and the network between them.
pub(super) struct Network {
    /// Where all of it lies.
    dir: tempfile::TempDir,
    switch: Machine,
    pub(super) hosts: Vec<Host>,
    made: usize,
}

/// A host that runs.
pub(super) struct Host {
    pub(super) name: String,
    pub(super) address: String,
    machine: Machine,
    /// Its first process, as this one sees it.
    first: Pid,
}

/// A process that holds namespaces.
struct Machine {
    process: Child,
    /// Its standard error; of interest only if it does not start.
    said: File,
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether this machine can be several; if not, why.
pub(super) fn obstacle() -> Option<String> {
    for tool in ["ip", "nsenter", "unshare"] {
        if Command::new(tool).arg("--help").output().is_err() {
            return Some(format!("there is no command {tool}"));
        }
    }
    let script = "ip link add br0 type bridge && ip link add ve0 type veth peer name ve1";
    let flags = ["--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--mount-proc"];
    let tried = Command::new("unshare").args(flags).args(["sh", "-c", script]).output();
    match tried {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr);
            Some(format!("namespaces cannot be made here: {}", text.trim()))
        }
        Err(error) => Some(format!("namespaces cannot be made here: {error}")),
    }
}

impl Network {
    /// A network with so many hosts.
    pub(super) fn new(hosts: usize) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("sf-hosts-").tempdir()?;
        for name in [DISK, "disks", "tmp"] {
            fs::create_dir(dir.path().join(name))?;
        }
        let script = "ip link set lo up && ip link add br0 type bridge && ip link set br0 up \
                      && ip addr add 10.77.0.1/24 dev br0 && echo ready && exec sleep infinity";
        let switch = Machine::start(&["--net"], script)?;
        let mut network = Self { dir, switch, hosts: Vec::new(), made: 0 };
        network.write_agent()?;
        for _ in 0..hosts {
            let host = network.boot()?;
            network.hosts.push(host);
        }
        Ok(network)
    }

    /// The path that is a directory of its own on every host.
    pub(super) fn disk(&self) -> PathBuf {
        self.dir.path().join(DISK)
    }

    /// The script by which the launcher starts its daemons on hosts.
    pub(super) fn agent(&self) -> PathBuf {
        self.dir.path().join("agent")
    }

    /// Where MPI keeps its own files.
    pub(super) fn scratch(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    /// A command that runs on the switch.
    pub(super) fn on_switch(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--net", "--target", &self.switch.process.id().to_string(), "--", program]);
        command
    }

    fn write_agent(&self) -> anyhow::Result<()> {
        let dir = self.dir.path().display();
        let script = format!(
            "#!/bin/sh\nhost=$1\nshift\n\
             exec nsenter --mount --uts --ipc --net --pid --target \"$(cat '{dir}/'\"$host\".pid)\" -- sh -c \"$*\"\n"
        );
        fs::write(self.agent(), script)?;
        Ok(fs::set_permissions(self.agent(), fs::Permissions::from_mode(0o755))?)
    }

    /// Starts a new host with an empty disk.
    fn boot(&mut self) -> anyhow::Result<Host> {
        self.made += 1;
        let number = self.made;
        let (name, address) = (format!("h{number}"), format!("10.77.0.{}", 10 + number));
        let dir = self.dir.path();
        let disk = dir.join("disks").join(&name);
        fs::create_dir(&disk)?;
        let script = format!(
            "hostname {name} && mount --bind '{}' '{}' && ip link set lo up \
             && until ip link set eth0 up 2>/dev/null; do sleep 0.02; done \
             && ip addr add {address}/24 dev eth0 && echo ready && exec sleep infinity",
            disk.display(),
            self.disk().display(),
        );
        let flags = ["--net", "--mount", "--uts", "--ipc", "--pid", "--fork", "--mount-proc"];
        let mut machine =
            Machine::spawn(&[&flags[..], &["--kill-child=SIGKILL"]].concat(), &script)?;
        let first = machine.first_child()?;
        let plug = format!(
            "ip link add v{number} type veth peer name eth0 netns {} \
             && ip link set v{number} master br0 up",
            first.as_raw_nonzero()
        );
        let plugged = self.on_switch("sh").args(["-c", &plug]).status()?;
        if !plugged.success() {
            bail!("{name} cannot be connected");
        }
        machine.hear_ready()?;
        fs::write(dir.join(format!("{address}.pid")), first.as_raw_nonzero().to_string())?;
        Ok(Host { name, address, machine, first })
    }

    /// A host dies with everything on it, at once.
    pub(super) fn kill(&mut self, at: usize) -> anyhow::Result<()> {
        let host = &mut self.hosts[at];
        kill_process(host.first, Signal::KILL)?;
        host.machine.process.wait()?;
        Ok(())
    }

    /// A new host with an empty disk takes the place of one that is dead; the old disk is gone.
    pub(super) fn replace(&mut self, at: usize) -> anyhow::Result<()> {
        fs::remove_dir_all(self.dir.path().join("disks").join(&self.hosts[at].name))?;
        self.hosts[at] = self.boot()?;
        Ok(())
    }

    /// Waits until nothing of a dead job runs on any host; kills what does not go by itself.
    pub(super) fn quiet(&self) -> anyhow::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left: Vec<Pid> = self.hosts.iter().flat_map(Host::processes).collect();
            if left.is_empty() {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("{} processes do not go", left.len());
            }
            for pid in left {
                kill(pid);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Host {
    /// Everything that runs there, besides its first process.
    fn processes(&self) -> Vec<Pid> {
        let space = |pid: Pid| fs::read_link(format!("/proc/{}/ns/pid", pid.as_raw_nonzero())).ok();
        let Some(own) = space(self.first) else { return Vec::new() };
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let here =
            |pid: &Pid| *pid != self.first && space(*pid).as_ref() == Some(&own) && !is_dead(*pid);
        numbers.filter_map(Pid::from_raw).filter(here).collect()
    }
}

/// Whether only its number is left.
fn is_dead(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.map_or(true, |stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')))
}

impl Machine {
    /// Starts a script in new namespaces and waits until it says that it is ready.
    fn start(flags: &[&str], script: &str) -> anyhow::Result<Self> {
        let mut machine = Self::spawn(flags, script)?;
        machine.hear_ready()?;
        Ok(machine)
    }

    fn spawn(flags: &[&str], script: &str) -> anyhow::Result<Self> {
        let mut command = Command::new("unshare");
        command.args(flags).args(["sh", "-c", script]);
        let said = tempfile::tempfile()?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(said.try_clone()?);
        die_with_us(&mut command);
        Ok(Self { process: command.spawn().context("starting a machine")?, said })
    }

    fn hear_ready(&mut self) -> anyhow::Result<()> {
        let mut line = String::new();
        BufReader::new(self.process.stdout.take().context("its output")?).read_line(&mut line)?;
        if line.trim() == "ready" {
            return Ok(());
        }
        let mut said = String::new();
        self.said.rewind()?;
        self.said.read_to_string(&mut said)?;
        bail!("a machine does not start: {said}")
    }

    /// The process that the namespaces of processes begin with.
    fn first_child(&self) -> anyhow::Result<Pid> {
        let pid = self.process.id();
        let path = Path::new("/proc").join(format!("{pid}/task/{pid}/children"));
        let deadline = Instant::now() + PATIENCE;
        loop {
            let children = fs::read_to_string(&path)?;
            let first = children.split_whitespace().next().and_then(|text| text.parse().ok());
            if let Some(first) = first.and_then(Pid::from_raw) {
                return Ok(first);
            }
            if Instant::now() > deadline {
                bail!("a machine has no processes");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
