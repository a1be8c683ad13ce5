//! `export`: regions of a checkpoint as raw files, every page verified on the way.

use std::process::ExitCode;
use std::sync::atomic::AtomicU64;

use serde_json::json;
use standfast_admin::export::{Export, Exported, INDEX, Wanted};
use standfast_admin::human_bytes;
use standfast_admin::{choose, open};

use crate::args::{ExportArgs, Global};
use crate::bar;
use crate::escape;
use crate::failure::Result;
use crate::interrupt;
use crate::output::{GOOD, Output};

/// Exports a checkpoint, or some regions of it.
pub(crate) fn run(global: &Global, args: &ExportArgs, output: &Output) -> Result<ExitCode> {
    // Files on their way are removed when it is interrupted.
    interrupt::listen();
    let job = open(&global.place())?;
    let _lock = job.lock()?;
    let inventory = job.inventory()?;
    let manifest = choose(&inventory, Some(args.version))?;
    let wanted = Wanted { to: &args.to, regions: &args.region, force: args.force };
    let export = Export::plan(&job, manifest, wanted)?;
    let total = export.bytes();
    let (bar, done) = (bar::bytes(output, total, "exporting"), AtomicU64::new(0));
    let files = bar::follow(&bar, &done, None, || export.run(&done, interrupt::requested()))?;
    bar.finish_and_clear();
    tell(&files, total, args, output)?;
    Ok(ExitCode::SUCCESS)
}

fn tell(planned: &[Exported], total: u64, args: &ExportArgs, output: &Output) -> Result<()> {
    for file in planned {
        output.record("file", file)?;
        output.line(format_args!(
            "  {}  {}  ({})",
            args.to.join(&file.file).display(),
            human_bytes(file.bytes),
            escape::name(&file.region)
        ))?;
    }
    let fields = json!({
        "version": args.version, "to": args.to.to_string_lossy(), "files": planned.len(),
        "bytes": total,
    });
    output.record("exported", fields)?;
    output.line(format_args!(
        "{}  {} of checkpoint {}, every page verified; {} tells which file is whose",
        output.paint(GOOD, "exported"),
        human_bytes(total),
        args.version,
        args.to.join(INDEX).display()
    ))
}
