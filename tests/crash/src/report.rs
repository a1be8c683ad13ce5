//! What a worker tells on its standard output, line by line, and what its parent makes of it.
//!
//! ```text
//! begun 3            checkpoint 3 is about to be taken
//! returned 3         the call that takes checkpoint 3 has returned
//! durable 3          the library said that checkpoint 3 is durable
//! passed NAME 2 3    a failpoint was passed for the second time, during step 3
//! dying NAME 2       the worker kills itself there
//! ```
//! Each line is one write: what the parent reads is what happened before the death.

/// A line of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A checkpoint is about to be taken.
    Begun(u64),
    /// The call has returned; the checkpoint may not be durable yet.
    Returned(u64),
    /// A checkpoint was acknowledged.
    Durable(u64),
    /// A point was passed: its name, how often by now, during which step.
    Passed(String, u64, u64),
    /// The worker kills itself: the point and the passage.
    Dying(String, u64),
}

impl Line {
    /// Writes the line at once.
    pub fn tell(&self) {
        let text = match self {
            Line::Begun(version) => format!("begun {version}\n"),
            Line::Returned(version) => format!("returned {version}\n"),
            Line::Durable(version) => format!("durable {version}\n"),
            Line::Passed(point, nth, step) => format!("passed {point} {nth} {step}\n"),
            Line::Dying(point, nth) => format!("dying {point} {nth}\n"),
        };
        // Past the locked and buffered handle: any thread may be the killer.
        let written = rustix::io::write(std::io::stdout(), text.as_bytes());
        assert_eq!(written, Ok(text.len()), "the parent reads");
    }

    /// Reads a line back; anything else is not ours.
    pub fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words.as_slice() {
            ["begun", version] => Some(Line::Begun(version.parse().ok()?)),
            ["returned", version] => Some(Line::Returned(version.parse().ok()?)),
            ["durable", version] => Some(Line::Durable(version.parse().ok()?)),
            ["passed", point, nth, step] => {
                Some(Line::Passed(point.into(), nth.parse().ok()?, step.parse().ok()?))
            }
            ["dying", point, nth] => Some(Line::Dying(point.into(), nth.parse().ok()?)),
            _ => None,
        }
    }
}

/// What a first life was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The last version that was acknowledged as durable; 0: none.
    pub durable: u64,
    /// The last version that was begun; 0: none.
    pub begun: u64,
}

impl Facts {
    /// These facts and what a worker's lines add to them.
    pub fn and(mut self, lines: &[Line]) -> Self {
        for line in lines {
            match line {
                Line::Begun(version) => self.begun = *version,
                Line::Durable(version) => self.durable = *version,
                Line::Returned(_) | Line::Passed(..) | Line::Dying(..) => {}
            }
        }
        self.begun = self.begun.max(self.durable);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lead_to_facts() {
        let text = "begun 1\ndurable 1\npassed a.b 1 2\nbegun 2\ndying a.b 2\nnoise\n";
        let lines: Vec<Line> = text.lines().filter_map(Line::parse).collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(Facts::default().and(&lines), Facts { durable: 1, begun: 2 });
    }
}
