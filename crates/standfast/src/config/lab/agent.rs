//! The agent of a node: where it is, and how it is started.

use super::LabKey;
use crate::config::text::time;

pub(super) const AGENT_DIR: LabKey = LabKey {
    name: "agent_dir",
    values: "DIR",
    help: "Directory of the agent's socket and log; empty: $XDG_RUNTIME_DIR/standfast, or /tmp/standfast-UID",
    default: "",
    set: |config, text| {
        config.agent_dir = text.into();
        Ok(())
    },
    show: |config| config.agent_dir.clone(),
};

pub(super) const AGENT_COMMAND: LabKey = LabKey {
    name: "agent_command",
    values: "PROGRAM",
    help: "Program that the first rank runs to start an agent where none runs",
    default: "standfast",
    set: |config, text| {
        if text.is_empty() {
            return Err("it is empty".into());
        }
        config.agent_command = text.into();
        Ok(())
    },
    show: |config| config.agent_command.clone(),
};

pub(super) const AGENT_IDLE: LabKey = LabKey {
    name: "agent_idle",
    values: "TIME",
    help: "How long an agent that the first rank has started stays without work",
    default: "1min",
    set: |config, text| {
        config.agent_idle = time(text)?;
        Ok(())
    },
    show: |config| config.agent_idle.to_string(),
};
