//! The progress bar of long work: bytes, rate and time left, on a terminal's stderr only.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;

/// How often a bar that follows a counter is drawn anew.
const REFRESH: Duration = Duration::from_millis(100);

/// A bar over so many bytes; hidden where it would disturb.
pub(crate) fn bytes(output: &Output, total: u64, what: &str) -> ProgressBar {
    let template = "  {msg} {wide_bar:.cyan/blue} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
    start(output, total, what, template)
}

/// A bar over so many steps.
pub(crate) fn steps(output: &Output, total: u64, what: &str) -> ProgressBar {
    start(output, total, what, "   {msg} {wide_bar:.cyan/blue} step {pos}/{len}")
}

fn start(output: &Output, total: u64, what: &str, template: &str) -> ProgressBar {
    let target = match output.shows_progress() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let style = ProgressStyle::with_template(template).expect("the template is fixed text");
    let bar = ProgressBar::with_draw_target(Some(total), target)
        .with_style(style.progress_chars("━╸─"))
        .with_message(what.to_owned());
    bar.tick();
    bar
}

/// Runs work that counts in `done`, and lets the bar follow. `total` is for work that finds out how much
/// there is.
pub(crate) fn follow<T: Send>(
    bar: &ProgressBar,
    done: &AtomicU64,
    total: Option<&AtomicU64>,
    work: impl FnOnce() -> T + Send,
) -> T {
    if bar.is_hidden() {
        return work();
    }
    std::thread::scope(|scope| {
        let worker = scope.spawn(work);
        while !worker.is_finished() {
            if let Some(total) = total {
                bar.set_length(total.load(Ordering::Relaxed));
            }
            bar.set_position(done.load(Ordering::Relaxed));
            std::thread::sleep(REFRESH);
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
