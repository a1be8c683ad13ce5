//! Where checkpoints are: the store, this node and the job in it.

use standfast_format::name;

use super::Key;

pub(super) const STORE: Key = Key {
    name: "store",
    help: "Directory (or URL) below which every job has its store; {node} stands for the node's name",
    default: "standfast-store",
    set: |config, text| {
        if text.is_empty() {
            return Err("it is empty".into());
        }
        config.store = text.into();
        Ok(())
    },
    show: |config| config.store.clone(),
};

pub(super) const NODE: Key = Key {
    name: "node",
    help: "Name of this node; host: the host's own",
    default: "host",
    set: |config, text| {
        name::check_job(text).map_err(|error| error.to_string())?;
        config.node = text.into();
        Ok(())
    },
    show: |config| config.node.clone(),
};

pub(super) const JOB: Key = Key {
    name: "job",
    help: "Name of the job; a restart finds the checkpoints of the same name",
    default: "job",
    set: |config, text| {
        name::check_job(text).map_err(|error| error.to_string())?;
        config.job = text.into();
        Ok(())
    },
    show: |config| config.job.clone(),
};
