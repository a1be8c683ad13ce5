//! `agent`: starts, asks and ends the agent that writes for all ranks of this node.

use std::process::ExitCode;

use serde_json::json;
use standfast::location;
use standfast_admin::human_bytes;
use standfast_agent::{DrainStatus, Place, SessionStatus, Status};

use crate::args::Global;
use crate::args::agent::{AgentArgs, AgentCommand, PlaceArgs, StartArgs, StopArgs};
use crate::escape;
use crate::failure::{Failure, Result};
use crate::output::{FAINT, Output, TITLE};

/// Does what was asked.
pub(crate) fn run(global: &Global, args: &AgentArgs, output: &Output) -> Result<ExitCode> {
    match &args.command {
        AgentCommand::Start(args) => start(global, args, output),
        AgentCommand::Status(args) => status(&place_of(global, args)?, output),
        AgentCommand::Stop(args) => stop(global, args, output),
        AgentCommand::Run(args) => be(global, args),
    }
}

fn start(global: &Global, args: &StartArgs, output: &Output) -> Result<ExitCode> {
    let place = place_of(global, &args.place)?;
    let command = std::env::current_exe()
        .map_err(|error| Failure::os("find", "this program's own file", error))?;
    standfast_agent::start_beside(&place, &command, idle(global, args)?)?;
    let status = standfast_agent::status(&place)?;
    let dir = place.dir().display();
    output.line(format_args!("agent {} runs, {dir}", status.pid))?;
    output.record("agent", json!({ "pid": status.pid, "dir": place.dir() }))?;
    Ok(ExitCode::SUCCESS)
}

fn be(global: &Global, args: &StartArgs) -> Result<ExitCode> {
    let place = place_of(global, &args.place)?;
    let dir = place.dir().to_string_lossy().into_owned();
    let idle = format!("{}ms", idle(global, args)?.as_millis());
    let words = ["run", "--dir", &dir, "--idle", &idle].map(str::to_owned);
    Ok(standfast_agent::command(&words))
}

fn stop(global: &Global, args: &StopArgs, output: &Output) -> Result<ExitCode> {
    standfast_agent::stop(&place_of(global, &args.place)?, args.now)?;
    output.line("the agent has ended")?;
    output.record("stopped", json!({}))?;
    Ok(ExitCode::SUCCESS)
}

fn status(place: &Place, output: &Output) -> Result<ExitCode> {
    let status = standfast_agent::status(place)?;
    let Status { pid, version, uptime_s, beat_ms, stopping, writes, written_bytes, .. } = &status;
    let average = written_bytes.checked_div(*writes);
    let fields = json!({
        "pid": pid, "version": version, "uptime_s": uptime_s, "beat_ms": beat_ms,
        "stopping": stopping, "writes": writes, "written_bytes": written_bytes,
        "dir": place.dir(), "log": place.log(),
    });
    output.record("agent", fields)?;
    for session in &status.sessions {
        let mut fields = json!(session);
        fields["write_bytes_average"] = json!(average);
        output.record("session", fields)?;
    }
    status.drains.iter().try_for_each(|drain| output.record("drain", drain))?;
    let title = format!("agent {pid}, version {version}, up {uptime_s} s");
    output.line(output.paint(TITLE, title))?;
    let ending = if *stopping { ", about to end" } else { "" };
    let average = human_bytes(average.unwrap_or(0));
    output.line(format_args!(
        "  {} in {writes} writes of {average} on the average, last beat {beat_ms} ms ago{ending}",
        human_bytes(*written_bytes)
    ))?;
    let columns = "STORE|>RANKS|>POOL|>IN USE|>PEAK|>UNDER WAY|>COMMITTED|>FAILED";
    output.table(columns, status.sessions.iter().map(row).collect())?;
    status.drains.iter().try_for_each(|drain| output.line(drained(drain)))?;
    output.line(output.paint(FAINT, format_args!("  log: {}", place.log().display())))?;
    Ok(ExitCode::SUCCESS)
}

fn row(session: &SessionStatus) -> Vec<String> {
    let unit_bytes = session.pool_bytes / u64::from(session.units.max(1));
    let units = |units: u32| human_bytes(u64::from(units) * unit_bytes);
    let under_way = match (session.under_way, session.committing) {
        (None, _) => "-".into(),
        (Some(version), false) => format!("{version}, captured"),
        (Some(version), true) => format!("{version}, written"),
    };
    vec![
        escape::name(&session.store),
        format!("{} of {}", session.connected, session.ranks),
        human_bytes(session.pool_bytes),
        units(session.units - session.units_free.min(session.units)),
        units(session.units_peak),
        under_way,
        session.committed.to_string(),
        session.failed.to_string(),
    ]
}

/// How far a store's way to global storage is.
fn drained(drain: &DrainStatus) -> String {
    let doing = match (drain.under_way, &drain.waits_for) {
        (Some(version), _) => {
            format!("checkpoint {version} on its way, {}", human_bytes(drain.under_way_bytes))
        }
        (None, Some(why)) => format!("waits: {}", escape::name(why)),
        (None, None) => "nothing due".into(),
    };
    let newest = drain.newest.map_or(String::new(), |newest| format!(", {newest} the last"));
    let job = if drain.has_job { "" } else { ", its job is over" };
    format!(
        "  {} to {}: {doing}; {} arrived{newest}, {} sent{job}",
        escape::name(&drain.store),
        escape::name(&drain.global),
        drain.arrived,
        human_bytes(drain.sent_bytes),
    )
}

fn place_of(global: &Global, args: &PlaceArgs) -> Result<Place> {
    let configured = match &args.dir {
        Some(dir) => Some(dir.clone()),
        None => location::agent_dir(&standfast_admin::load(&global.place())?.config),
    };
    Ok(Place::open(configured.as_deref())?)
}

fn idle(global: &Global, args: &StartArgs) -> Result<std::time::Duration> {
    match args.idle {
        Some(idle) => Ok(idle.0),
        None => Ok(standfast_admin::load(&global.place())?.config.agent.idle.0),
    }
}
