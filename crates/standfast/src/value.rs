//! Single protected values, such as the number of the step.

use crate::error::Result;
use crate::job::Job;
use crate::protected::{Element, Protected};

/// A protected value, on a page of its own. Dropping it ends the protection.
#[derive(Debug)]
#[must_use = "dropping it ends the protection"]
pub struct Value<T: Element>(Protected<T>);

impl Job {
    /// A protected value that starts with zero.
    ///
    /// ```
    /// use standfast::Job;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let store = dir.path().to_str().unwrap();
    /// let job = Job::builder().store(store).open()?;
    /// let step = job.value::<u64>("step")?;
    /// step.set(7);
    /// job.checkpoint(None)?;
    /// step.set(8);
    /// job.restart()?;
    /// assert_eq!(step.get(), 7);
    /// # Ok::<(), standfast::Error>(())
    /// ```
    pub fn value<T: Element + Copy>(&self, name: &str) -> Result<Value<T>> {
        Ok(Value(self.alloc(name, 1)?))
    }
}

impl<T: Element + Copy> Value<T> {
    /// The value.
    pub fn get(&self) -> T {
        self.0.read()[0]
    }

    /// Gives it another one.
    pub fn set(&self, value: T) {
        self.0.write()[0] = value;
    }

    /// The region's name.
    pub fn name(&self) -> &str {
        self.0.name()
    }
}
