//! Points: where a program lets checkpoints be taken, and who asks for one there.
//!
//! ```text
//! clock  -> `interval` (first rank) -+
//! signal -> `signal` (any rank)     -+-> all ranks agree -> checkpoint, or none
//! file   -> `run_request` (any rank)        -+
//! ```
//! Why ranks agree at every point: a rank cannot know whether another one was asked, and a
//! checkpoint that only some of them take would never end. It is one reduction of three bytes.
//!
//! Invariants:
//! - All ranks take a checkpoint at the same point, or none does.
//! - A request stays until a checkpoint has been taken.

use standfast_comm::Step;
use standfast_format::Version;

use crate::error::Result;
use crate::job::Job;
use crate::run_request::RequestWatch;

impl Job {
    /// Whether a checkpoint is due by the setting `interval`, or asked for by the
    /// `signal` or by `standfast run`. Cheap enough to ask in every step of a program.
    ///
    /// In a job of several ranks each answers for itself; [`Job::point`] asks all.
    pub fn need_checkpoint(&self) -> bool {
        self.is_asked() || self.is_due()
    }

    /// Takes a checkpoint if one is due or asked for, and tells its version.
    ///
    /// A program calls this wherever its state is worth saving, and leaves the rest to
    /// `interval` and `signal`:
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = dir.path().to_str().unwrap();
    /// let settings = [("store", store), ("interval", "10min"), ("signal", "USR1")];
    /// let job = standfast::Job::open(&settings)?;
    /// let field = job.alloc::<f64>("field", 4096)?;
    /// for _step in 0..1000 {
    ///     field.write()[0] += 1.0;
    ///     job.point()?;
    /// }
    /// # Ok::<(), standfast::Error>(())
    /// ```
    ///
    /// In a job of several ranks all of them call it. The first rank's clock decides for all, and a
    /// signal to any of them asks all.
    pub fn point(&self) -> Result<Option<Version>> {
        let mut core = self.core();
        if core.team.size() > 1 {
            self.can_talk()?;
            let due = !core.team.is_first() || self.is_due();
            let own = [due, !self.is_asked(), core.can_step()];
            let [due, unasked, ready] = *core.team.all_hold(Step("point"), own)?;
            if ready {
                core.step();
            }
            let wanted = due || !unasked;
            return if wanted { self.take(&mut core, None).map(Some) } else { Ok(None) };
        }
        drop(core);
        if !self.need_checkpoint() {
            return Ok(None);
        }
        let mut core = self.core();
        // Another thread may have taken it in the meantime.
        if !self.need_checkpoint() {
            return Ok(None);
        }
        self.take(&mut core, None).map(Some)
    }

    /// Whether enough work has been done since the last checkpoint.
    fn is_due(&self) -> bool {
        let pace = self.pace();
        pace.is_due(self.since_open()) && !pace.waits_for().is_some_and(|it| self.is_under_way(it))
    }

    /// Whether a signal or a supervisor waits for its checkpoint.
    fn is_asked(&self) -> bool {
        self.asked.signal.as_ref().is_some_and(|requests| requests.is_pending())
            || self.asked.run.as_ref().is_some_and(RequestWatch::is_pending)
    }
}
