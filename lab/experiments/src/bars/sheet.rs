//! What a run of bars says: a line for each bar, one for each that could not be measured, and the
//! count of both.

use std::fmt::Display;
use std::process::ExitCode;

use lab_origin::Origin;
use serde::Serialize;
use standfast_measure::{Bar, Better};

/// Exit code of a run in which bars were missed.
const MISSED: u8 = 1;
/// Exit code of a run in which none was missed, and some could not be measured.
const UNMEASURED: u8 = 3;

/// Prints rows as they come and counts them.
pub(crate) struct Sheet {
    json: bool,
    total: Total,
}

#[derive(Default, Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Total {
    met: usize,
    missed: usize,
    unmeasured: usize,
}

/// A line of JSON with its type.
#[derive(Serialize)]
struct Line<'a, T> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    body: &'a T,
}

#[derive(Serialize)]
struct Unmeasured<'a> {
    issue: &'a str,
    name: &'a str,
    why: String,
}

impl Sheet {
    /// Begins a sheet: says what is measured where.
    pub(crate) fn begin(json: bool) -> Self {
        let sheet = Self { json, total: Total::default() };
        let origin = Origin::look(None);
        let Origin { commit, machine, command, date } = &origin;
        sheet.line("origin", &origin, || format!("{date}  {commit}  {machine}\n{command}"));
        sheet
    }

    pub(crate) fn bar(&mut self, bar: Bar) {
        match bar.met {
            true => self.total.met += 1,
            false => self.total.missed += 1,
        }
        match self.json {
            true => println!("{}", serde_json::to_string(&bar).expect("a bar can be written")),
            false => println!("{}", text(&bar)),
        }
    }

    /// Bars that this machine cannot measure, and why.
    pub(crate) fn unmeasured(&mut self, issue: &str, name: &str, why: impl Display) {
        self.total.unmeasured += 1;
        let row = Unmeasured { issue, name, why: why.to_string() };
        self.line("unmeasured", &row, || format!("{issue}  {name:<76}NOT MEASURED: {}", row.why));
    }

    /// Counts the rows, and says by the exit code whether all are there and met.
    pub(crate) fn end(self) -> ExitCode {
        let Total { met, missed, unmeasured } = self.total;
        self.line("summary", &self.total, || {
            format!("{met} met, {missed} missed, {unmeasured} not measured")
        });
        self.total.exit_code()
    }

    fn line<T: Serialize>(&self, kind: &'static str, body: &T, text: impl Fn() -> String) {
        match self.json {
            true => {
                let line = serde_json::to_string(&Line { kind, body });
                println!("{}", line.expect("a line can be written"));
            }
            false => println!("{}", text()),
        }
    }
}

impl Total {
    fn exit_code(self) -> ExitCode {
        match self {
            Total { missed: 1.., .. } => ExitCode::from(MISSED),
            Total { unmeasured: 1.., .. } => ExitCode::from(UNMEASURED),
            Total { .. } => ExitCode::SUCCESS,
        }
    }
}

fn text(bar: &Bar) -> String {
    let relation = match bar.better {
        Better::Higher => ">=",
        Better::Lower => "<=",
    };
    let ceiling = match bar.ceiling {
        Some(ceiling) => format!("ceiling {ceiling:.2} {}", bar.ceiling_unit),
        None => String::new(),
    };
    let verdict = if bar.met { "met" } else { "NOT MET" };
    let (issue, name) = (bar.issue, &bar.name);
    // As many digits as it has, three at most.
    let goal = (bar.goal * 1e3).round() / 1e3;
    format!("{issue}  {name:<76}{:>9.3} {relation} {goal:<7} {verdict:<9}{ceiling}", bar.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_says_what_is_worst() {
        let code = |met, missed, unmeasured| {
            format!("{:?}", Total { met, missed, unmeasured }.exit_code())
        };
        assert_eq!(code(3, 0, 0), format!("{:?}", ExitCode::SUCCESS));
        assert_eq!(code(3, 0, 2), format!("{:?}", ExitCode::from(3)));
        assert_eq!(code(3, 1, 2), format!("{:?}", ExitCode::from(1)));
    }
}
