#!/usr/bin/env bash
# Tries a script on a real Slurm: munged, slurmctld and a slurmd for each node of its own, in a temporary
# directory that goes with them. Needs root and Debian's slurmctld, slurmd, slurm-client and munge;
# two to three minutes.
#
#     try.sh STANDFAST PROGRAM [ARGUMENTS]
#     SCRIPT=nodes.sbatch try.sh STANDFAST PROGRAM [ARGUMENTS]
#     NODES=3 TASKS=2 LAUNCH="srun --kill-on-bad-exit=1 --mpi=pmix" SCRIPT=nodes.sbatch \
#         try.sh STANDFAST PROGRAM [ARGUMENTS]
#
# NODES and TASKS (on each of them) are 1 if not set. Every node is a slurmd of this machine and has a
# name and, with nodes.sbatch, a store of its own. LOSE=1 removes the store of the last one before the
# job comes back.
#
# The program should take some 45 seconds: the job has a minute, and is warned after 10 to 40 seconds.
set -euo pipefail

standfast=$(realpath "$1")
shift
here=$(cd "$(dirname "$0")" && pwd)
export PATH=$PATH:/usr/sbin:/sbin
for tool in munged slurmctld slurmd sbatch; do
    command -v "$tool" >/dev/null || { echo "try: there is no $tool" >&2; exit 1; }
done
dir=$(mktemp -d /tmp/standfast-slurm-XXXXXX)
chmod 755 "$dir"
daemons=()
clean_up() {
    scancel --quiet --signal=KILL "${job:-0}" 2>/dev/null || true
    for ((at = ${#daemons[@]} - 1; at >= 0; at--)); do
        kill "${daemons[at]}" 2>/dev/null || true
        wait "${daemons[at]}" 2>/dev/null || true
    done
    rm -rf "$dir"
}
trap clean_up EXIT
start() {
    "$@" >>"$dir/log" 2>&1 &
    daemons+=($!)
}
until_so() { # what, command: waits for a minute or four
    local what=$1 end=$((SECONDS + 240))
    shift
    until "$@" >/dev/null 2>&1; do
        if [ $SECONDS -gt $end ]; then
            echo "try: $what takes too long" >&2
            tail -n 30 "$dir"/log "$dir"/*.log >&2 || true
            tail -n 100 "$dir"/job/slurm-out >&2 || true
            exit 1
        fi
        sleep 0.3
    done
}
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

nodes=${NODES:-1}
tasks=${TASKS:-1}
mkdir -p "$dir"/{munge,state,job,bin}
# Nodes of one machine have one host name; the node's number tells them apart.
cat >"$dir/bin/standfast" <<SH
#!/bin/sh
STANDFAST_LAB_NODE=\$SLURMD_NODENAME exec "$standfast" "\$@"
SH
cat >"$dir/bin/on-node" <<'SH'
#!/bin/sh
STANDFAST_LAB_NODE=$SLURMD_NODENAME exec "$@"
SH
chmod 755 "$dir"/bin/*
dd if=/dev/urandom of="$dir/munge/key" bs=128 count=1 status=none
chmod 600 "$dir/munge/key"
start munged --foreground --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" \
    --pid-file="$dir/munge/pid" --log-file="$dir/munge/log" --seed-file="$dir/munge/seed"
until_so "munged" test -S "$dir/munge/socket"

host=$(hostname -s)
cat >"$dir/slurm.conf" <<CONF
ClusterName=try
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmctldPort=$(free_port)
AuthType=auth/munge
AuthInfo=socket=$dir/munge/socket
CredType=cred/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool-%n
TmpFS=$dir/tmp-%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd-%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
for ((node = 1; node <= nodes; node++)); do
    # Slurm's PMIx makes directories there that are named by the job alone.
    mkdir "$dir/spool-n$node" "$dir/tmp-n$node"
    echo "NodeName=n$node NodeHostname=$host NodeAddr=127.0.0.1 Port=$(free_port) CPUs=$tasks"
done >>"$dir/slurm.conf"
cat >"$dir/cgroup.conf" <<CONF
CgroupPlugin=cgroup/v1
ConstrainCores=no
ConstrainRAMSpace=no
CONF
export SLURM_CONF=$dir/slurm.conf
start slurmctld -D -i
for ((node = 1; node <= nodes; node++)); do
    start slurmd -D -N "n$node"
done
up() { [ "$(sinfo --noheader --states=idle --format=%D)" = "$nodes" ]; }
until_so "Slurm" up
echo "slurm $(sinfo --version | cut -d' ' -f2), nodes: $nodes"

cd "$dir/job"
export PATH=$dir/bin:$PATH
# A node's own places.
export STANDFAST_LAB_AGENT_DIR=$dir/agent
# Open MPI takes nodes of one host name for one node and crashes in its shared memory.
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo
export OMPI_MCA_mpi_yield_when_idle=1
if [ "${SCRIPT:-}" = nodes.sbatch ]; then
    export STANDFAST_STORE=$dir/disk/{node}
fi
job=$(sbatch --parsable --nodes="$nodes" --ntasks=$((nodes * tasks)) --ntasks-per-node="$tasks" \
    --time=1 --signal=B:USR1@20 --output=slurm-out "$here/${SCRIPT:-shared.sbatch}" on-node "$@")
echo "job $job is submitted, with one minute"
# Slurm lets requeued jobs wait for two minutes, for the sake of epilogues; a few seconds do here.
ended() {
    local state
    state=$(scontrol show job "$job")
    if grep -q "JobState=PENDING" <<<"$state" && grep -q "Restarts=[1-9]" <<<"$state"; then
        if [ "${LOSE:-}" ] && grep -q "Restarts=1" <<<"$state"; then
            rm -rf "$dir/disk/n$nodes"
        fi
        ((SECONDS % 5)) || scontrol update JobId="$job" StartTime=now || true
    fi
    grep -Eq "JobState=(COMPLETED|FAILED|TIMEOUT|CANCELLED|NODE_FAIL)" <<<"$state"
}
until_so "the end" ended
cat slurm-out
scontrol show job "$job" | grep -E "JobState|Restarts|ExitCode"
if ! scontrol show job "$job" | grep -q "JobState=COMPLETED"; then
    tail -n 20 "$dir"/*.log
    exit 1
fi
scontrol show job "$job" | grep -q "Restarts=[1-9]"
