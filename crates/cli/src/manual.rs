//! The manual: examples, what to do next, JSON lines and exit codes, each written once.
//!
//! Data: [`PAGES`] and the table of kinds -> the end of every `--help`, and the sections
//! EXAMPLES, NEXT, JSON LINES and EXIT STATUS of the man pages.

use std::fmt::Write as _;

use standfast::Kind;

/// What a command's help says beyond its options.
pub(crate) struct Page {
    /// The command's name.
    pub(crate) command: &'static str,
    /// A command line and what it does.
    pub(crate) examples: &'static [(&'static str, &'static str)],
    /// What people usually do after it.
    pub(crate) next: &'static str,
    /// Types of its JSON lines, with their fields.
    pub(crate) json: &'static [(&'static str, &'static str)],
}

/// A page per command.
pub(crate) const PAGES: &[Page] = &[
    Page {
        command: "demo",
        examples: &[
            ("standfast demo", "one process is killed and restarted; a few seconds"),
            ("standfast --store /tmp/sf demo", "the same, and keeps the checkpoints to look at"),
        ],
        next: "protect your own program's memory: docs/TUTORIAL.md takes such a solver as its example",
        json: &[
            ("demo", "size, steps, every, protected_bytes, store"),
            ("act", "act (undisturbed, killed, restarted), steps, seconds"),
            ("checkpoint", "version, step, stored_bytes, captured_bytes, blocked_ns, total_ns"),
            ("killed", "signal, step, checkpoints"),
            ("restarted", "version, step, steps_lost, passed_over"),
            ("compared", "identical, bytes, digest, digest_undisturbed"),
            ("totals", "checkpoints, stats, page_bytes, stored_bytes, running_seconds"),
        ],
    },
    Page {
        command: "run",
        examples: &[
            (
                "standfast run --preload --every 10min --retries 3 -- ./simulate input.txt",
                "an unmodified program; when it dies it goes on from its last checkpoint",
            ),
            (
                "standfast --job sim run --preload -- ./simulate input.txt",
                "the same line again, after a reboot too: it goes on from the newest checkpoint",
            ),
            (
                "kill -USR1 PID",
                "a checkpoint now; PID is that of 'standfast run' or of the program",
            ),
            (
                "standfast run --preload --restart never -- ./simulate input.txt",
                "from the beginning, whatever the store holds; --restart force goes on in spite of other arguments",
            ),
            (
                "standfast run --criu --every 1h -- ./service",
                "whole process trees, where CRIU works",
            ),
            (
                "standfast run --retries 5 --backoff 10s -- mpirun -n 8 ./uses_standfast",
                "a program that calls the library itself: started again after 10, 20, 40 s, ..., it asks for its state",
            ),
            (
                "kill -TERM PID",
                "a checkpoint now, and when it is durable, or --grace is over, the program ends",
            ),
        ],
        next: "docs/TRANSPARENT.md tells what is captured and what a restart needs; standfast ls lists the checkpoints. The exit code is the program's own, 128 and the signal's number if it was killed",
        json: &[
            ("started (on stderr)", "attempt, version (null: from the beginning)"),
            ("ended (on stderr)", "code, signal"),
            ("pause (on stderr)", "seconds, retries_left"),
            ("leaving (on stderr)", "durable"),
            ("anew (on stderr)", "message"),
            ("not_noted (on stderr)", "kind, message"),
            ("no_checkpoint (on stderr)", "kind, message"),
        ],
    },
    Page {
        command: "ls",
        examples: &[
            ("standfast ls", "all jobs of the configured store"),
            ("standfast --store /scratch/sf --job heat ls", "one job elsewhere"),
        ],
        next: "standfast show VERSION tells what a checkpoint holds",
        json: &[
            ("job", "job, store, checkpoints, stored_bytes, finished"),
            (
                "checkpoint",
                "job, version, sequence, newest, marked, finished, abandoned, attempt, taken, taken_ns, level, ranks, captured_bytes, stored_bytes, ratio",
            ),
            ("damaged", "job, object, kind, what"),
        ],
    },
    Page {
        command: "show",
        examples: &[
            ("standfast show", "the newest checkpoint"),
            ("standfast show 12", "a given one"),
            ("standfast show --writes", "how its bytes were written, by size"),
            (
                "standfast show --references",
                "pages that other ranks hold: whose they are, their hashes",
            ),
            (
                "standfast show --ring",
                "groups, sectors, ring, and what each loss of nodes would cost; any node's store will do",
            ),
        ],
        next: "standfast verify VERSION checks its data, standfast export VERSION --to DIR takes it out",
        json: &[
            (
                "checkpoint",
                "job, version, sequence, taken, taken_ns, level, ranks, survives, marked (null, or why), finished, declared (null, or a list), page_bytes, hash, stats, stored_bytes, metadata_bytes",
            ),
            ("region", "rank, region, bytes, elem, pages, zero_pages, own_pages, old_pages, runs"),
            ("segment", "segment, bytes, slots, used_slots, origin (own, old, unreadable)"),
            ("reference", "rank, region, page, pages, owner, segment, slot, hashes"),
            (
                "ring",
                "version, nodes, ranks, sectors, groups, k, m, worst_case, survives, member_bytes, shard_bytes",
            ),
            (
                "node",
                "node, name, sector, ranks, member_bytes, shards, shard_bytes, survived, sent_bytes",
            ),
            (
                "group",
                "sector, level, members, member_nodes, keepers, keeper_nodes, shard_bytes, whole_survived",
            ),
            ("loss", "nodes, survived (share of sets), sets, exact"),
            (
                "writes",
                "rank or node, side (pieces, writes), from, below (null: no bound), count, bytes, ns",
            ),
        ],
    },
    Page {
        command: "verify",
        examples: &[
            ("standfast verify", "everything, each segment read once"),
            ("standfast verify 12", "what checkpoint 12 needs"),
            ("standfast verify --quick", "all but the data; seconds for any size"),
            ("standfast --stores '/local/{node}' verify", "stores of several nodes together"),
            (
                "standfast --stores '/local/{node}' verify --plan",
                "what a restart from these stores would do: what is lost, what brings it back",
            ),
        ],
        next: "a restart passes over damaged checkpoints by itself; standfast prune removes old ones",
        json: &[
            ("damage", "object, kind, what, count, checkpoints"),
            ("mark", "version, what, cleared (it is whole again)"),
            ("orphan", "object, bytes"),
            ("verdict", "ok, quick, checkpoints, intact, damaged, segments, bytes, seconds"),
            (
                "plan",
                "version, level, stores, recovery (local, fast, impossible), groups, groups_lost",
            ),
            ("unusable", "object, what"),
            ("make", "sector, level, what, rank, node, bytes, from"),
            ("lost", "sector, level, ranks, shards, wanted"),
            ("away", "nodes, needed (with their disks)"),
            ("older", "version (null: none)"),
        ],
    },
    Page {
        command: "diff",
        examples: &[
            ("standfast diff 3 4", "which regions changed, and how much"),
            ("standfast diff 3 4 --ranges", "also where, in bytes"),
        ],
        next: "standfast export VERSION --to DIR --region NAME takes a changed region out of each",
        json: &[
            (
                "region",
                "rank, region, state (same, changed, resized, added, removed), bytes_before, bytes_after, pages_changed, bytes_changed",
            ),
            ("range", "rank, region, start, end"),
            ("summary", "before, after, regions_changed, pages_changed, bytes_changed"),
        ],
    },
    Page {
        command: "export",
        examples: &[
            ("standfast export 12 --to out", "every region, and out/index.json to find them"),
            ("standfast export 12 --to out --region temperature", "one region"),
        ],
        next: "the files are plain memory: numpy.fromfile('out/temperature.raw', 'f8') reads doubles",
        json: &[
            ("file", "rank, region, file, bytes, elem"),
            ("exported", "version, to, files, bytes"),
        ],
    },
    Page {
        command: "prune",
        examples: &[
            ("standfast prune --keep 3", "shows the plan, then asks"),
            ("standfast prune --keep 3 --keep-version 100 --yes", "for scripts"),
            ("standfast prune --damaged", "gives up what cannot be read any more"),
        ],
        next: "standfast ls shows what is left",
        json: &[
            ("plan", "keep, remove, objects, bytes, unreadable"),
            ("remove", "object, bytes"),
            ("stays", "segment, bytes, needed_by"),
            ("pruned", "objects, bytes, unsealed_bytes"),
        ],
    },
    Page {
        command: "drain",
        examples: &[
            (
                "standfast --job heat drain --to s3://bucket/ckpt --follow",
                "beside the running job: the newest checkpoint, as often as bandwidth allows",
            ),
            ("standfast drain --to /lustre/me/ckpt --rate 200MB/s", "once, at most so fast"),
            (
                "standfast drain --to s3://bucket/ckpt --deadline 30s",
                "before an eviction: the best of the time that is left",
            ),
        ],
        next: "standfast --store s3://bucket/ckpt ls (show, verify, export, prune) looks at what arrived; standfast fetch brings it back",
        json: &[
            ("begins", "version, lacking_bytes"),
            ("drained", "version, segments, from_bytes, to_bytes, seconds, paused_seconds"),
            ("passed-over", "version, why"),
            ("waits", "why, seconds"),
        ],
    },
    Page {
        command: "fetch",
        examples: &[
            (
                "standfast --job heat fetch --from s3://bucket/ckpt",
                "the newest, into the local store",
            ),
            ("standfast --job heat fetch --from /lustre/me/ckpt 12", "a given checkpoint"),
        ],
        next: "start the program: it restarts from what was fetched",
        json: &[("fetched", "version, segments, from_bytes, to_bytes, seconds, paused_seconds")],
    },
    Page {
        command: "agent",
        examples: &[
            ("standfast agent start", "usually not needed: the first rank of a job starts it"),
            ("standfast agent status", "its jobs, their pools, what is under way"),
            ("standfast --json agent status", "the same for programs"),
            ("standfast agent stop", "when no job uses it; --now in any case"),
        ],
        next: "jobs use it with agent = on; docs/AGENT.md tells what it does and what survives",
        json: &[
            (
                "agent",
                "pid, dir (start); version, uptime_s, beat_ms, stopping, writes, written_bytes, dir, log (status)",
            ),
            (
                "session",
                "store, ranks, connected, pool_bytes, units, units_free, units_leased, units_peak, ranks_waiting, under_way, committing, committed, failed, blocks, block_bytes, write_bytes_average",
            ),
            (
                "drain",
                "store, global, has_job, under_way, under_way_bytes, read_bytes, sent_bytes, paused_ms, arrived, newest, waits_for",
            ),
            ("stopped", ""),
        ],
    },
    Page {
        command: "config",
        examples: &[
            ("standfast config", "what is in effect here, and why"),
            ("standfast config --toml > standfast.toml", "a file to start from"),
            ("STANDFAST_CODEC=zstd:3 standfast config", "try a setting"),
        ],
        next: "settings come from standfast.toml, then STANDFAST_* variables, then the program's call",
        json: &[("setting", "name, value, origin, default, values, help")],
    },
    Page {
        command: "bench",
        examples: &[
            ("standfast bench", "1 GiB in the directory for temporary files, about a minute"),
            ("standfast bench --dir /scratch --rounds 9", "the disk that checkpoints go to"),
            ("standfast bench gpu", "which GPU was found, and what it reaches"),
        ],
        next: "a stage far below its ceiling is worth a look at 'standfast config': threads, codec, io",
        json: &[
            (
                "gpu",
                "found, text (its name, or why none is used), driver, capability, memory_bytes, free_bytes (with the part gpu)",
            ),
            ("bench", "name, value, unit, ceiling_name, ceiling, note"),
            ("bar", "issue, name, value, goal, better, ceiling, ceiling_unit, met"),
        ],
    },
    Page {
        command: "plan",
        examples: &[
            (
                "standfast plan --nodes 512 --size 128GiB --mtti 6h --global-write 40GB/s",
                "what is not given is assumed; the first table says what",
            ),
            (
                "standfast bench --json > bench.json; standfast plan --bench bench.json",
                "rates and codecs as measured here",
            ),
            (
                "standfast plan --failure-log failures.txt --from-job --job heat",
                "MTTI from a log, sizes from the checkpoints of a job",
            ),
            (
                "standfast plan --nodes 512 --mtti 6h --toml > standfast.toml",
                "settings to run with",
            ),
        ],
        next: "put the settings into standfast.toml and call point() in the program's loop; interval = \"auto\" follows measurements while the job runs",
        json: &[
            (
                "inputs",
                "values (every input in seconds, bytes, bytes per second, shares), fields (name, value, source)",
            ),
            ("mtti", "mean_s, low_s, high_s, failures (with --failure-log; 95 % interval)"),
            (
                "plan",
                "levels, efficiency, breakdown, group_k, group_m, ring_survival, codec, pool_bytes, ranks_per_node, global_bytes, mtti_s, background, sensitivity, notes",
            ),
        ],
    },
    Page {
        command: "completions",
        examples: &[(
            "standfast completions bash > ~/.local/share/bash-completion/completions/standfast",
            "",
        )],
        next: "open a new shell",
        json: &[("text", "name, text")],
    },
    Page {
        command: "man",
        examples: &[
            ("standfast man | man -l -", "read it here"),
            ("standfast man --dir ~/.local/share/man/man1", "install all pages"),
        ],
        next: "man standfast-verify",
        json: &[("text", "name, text"), ("file", "file")],
    },
];

impl Page {
    /// The end of the command's help.
    pub(crate) fn help(&self) -> String {
        let mut text = String::from("Examples:\n");
        for (line, what) in self.examples {
            let _ = writeln!(text, "  {line}");
            if !what.is_empty() {
                let _ = writeln!(text, "      {what}");
            }
        }
        let _ =
            write!(text, "\nNext: {}\n\nJSON lines (--json):\n{}", self.next, self.json_lines());
        text.trim_end().to_owned()
    }

    /// The JSON lines, one per line.
    pub(crate) fn json_lines(&self) -> String {
        self.json.iter().map(|(kind, fields)| format!("  {kind}: {fields}\n")).collect()
    }
}

/// The JSON line of an error, which every command may print.
pub(crate) const ERROR_LINE: &str = "error (on stderr): kind, message, advice";

/// The end of `standfast --help`.
pub(crate) fn exit_codes() -> String {
    let mut text = String::from("Start with: standfast demo\n\nExit codes:\n");
    for (code, meaning) in exit_code_table() {
        let _ = writeln!(text, "  {code:>3}  {meaning}");
    }
    text.trim_end().to_owned()
}

/// Every exit code and what it means.
pub(crate) fn exit_code_table() -> Vec<(i32, String)> {
    let kinds = Kind::all().map(|kind| (kind.exit_code(), format!("{kind}: {}", meaning(kind))));
    [(0, "success".to_owned()), (2, "usage: the command line is wrong".to_owned())]
        .into_iter()
        .chain(kinds)
        .chain([(130, "interrupted".to_owned())])
        .collect()
}

fn meaning(kind: Kind) -> &'static str {
    match kind {
        Kind::Corrupt => "stored bytes are damaged, or the demo's answers differ",
        Kind::Missing => "no such store, job, checkpoint or region",
        Kind::Busy => "another process holds the store",
        Kind::Transient => "a failure that may pass; try again",
        Kind::Full => "no space is left",
        Kind::Denied => "access is refused",
        Kind::Io => "the device or the network failed",
        Kind::Unsupported => "this build or machine cannot do it; a newer format",
        Kind::Invalid => "an argument or a setting is wrong",
        Kind::Exhausted => "out of memory, threads or file descriptors",
        _ => "a fault of Standfast itself; please report it",
    }
}
