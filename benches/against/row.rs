//! A row of the table: what was measured, against what, and the goal.

use std::fmt;

use crate::bench::Compared;

/// One thing measured.
pub struct Row {
    /// Short, for `--only`.
    pub name: &'static str,
    /// What ran, or what was looked at.
    pub what: String,
    /// What of ours was measured; the figure itself if there is no peer.
    pub ours: Value,
    /// What it ran against, and the same of that.
    pub peer: Option<(String, Value)>,
    /// The figure that the goal is about.
    pub result: Value,
    /// What it should be.
    pub goal: Goal,
}

/// A figure with its unit.
#[derive(Clone, Copy)]
pub struct Value {
    /// The number, in the unit as it stands.
    pub amount: f64,
    /// What it counts.
    pub unit: Unit,
}

/// What a figure counts.
#[derive(Clone, Copy)]
pub enum Unit {
    /// Time.
    Seconds,
    /// Sizes.
    Bytes,
    /// How often in a second.
    PerSecond,
    /// How many times as fast as the peer: more is better.
    Speed,
    /// How many times the peer's time: less is better.
    Cost,
}

/// The bound of a figure.
#[derive(Clone, Copy)]
pub enum Goal {
    /// More is better.
    AtLeast(f64),
    /// Less is better.
    AtMost(f64),
    /// Shown for comparison only.
    Open,
}

impl Row {
    /// A pair where what counts is how many times as fast ours is.
    pub fn speed(
        name: &'static str,
        what: &str,
        peer: &str,
        compared: Compared,
        goal: Goal,
    ) -> Row {
        let Compared { ours, peer: theirs, speed } = compared;
        Row {
            name,
            what: what.to_owned(),
            ours: Value { amount: ours, unit: Unit::Seconds },
            peer: Some((peer.to_owned(), Value { amount: theirs, unit: Unit::Seconds })),
            result: Value { amount: speed, unit: Unit::Speed },
            goal,
        }
    }

    /// A pair where what counts is how many times the peer's time ours takes.
    pub fn cost(name: &'static str, what: &str, peer: &str, compared: Compared, most: f64) -> Row {
        let result = Value { amount: compared.speed.recip(), unit: Unit::Cost };
        Row { result, ..Row::speed(name, what, peer, compared, Goal::AtMost(most)) }
    }

    /// A figure of ours alone.
    pub fn figure(name: &'static str, what: &str, amount: f64, unit: Unit, goal: Goal) -> Row {
        let ours = Value { amount, unit };
        Row { name, what: what.to_owned(), ours, peer: None, result: ours, goal }
    }

    /// Whether the goal is reached, if there is one.
    pub fn reached(&self) -> Option<bool> {
        match self.goal {
            Goal::AtLeast(least) => Some(self.result.amount >= least),
            Goal::AtMost(most) => Some(self.result.amount <= most),
            Goal::Open => None,
        }
    }

    /// The goal in words.
    pub fn goal(&self) -> String {
        let with_unit = |amount| Value { amount, unit: self.result.unit };
        match self.goal {
            Goal::AtLeast(least) => format!("≥ {}", with_unit(least)),
            Goal::AtMost(most) => format!("≤ {}", with_unit(most)),
            Goal::Open => String::new(),
        }
    }
}

impl Unit {
    /// The unit's name in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Seconds => "seconds",
            Unit::Bytes => "bytes",
            Unit::PerSecond => "per_second",
            Unit::Speed => "times_as_fast",
            Unit::Cost => "times_the_time",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = self.amount;
        match self.unit {
            Unit::Seconds => {
                scaled(out, amount, 1000.0, &[(1e-9, "ns"), (1e-6, "µs"), (1e-3, "ms"), (1.0, "s")])
            }
            Unit::Bytes => {
                scaled(out, amount, 1024.0, &[(1.0, "B"), (1024.0, "KiB"), (1048576.0, "MiB")])
            }
            Unit::PerSecond => {
                scaled(out, amount, 1000.0, &[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s")])
            }
            Unit::Speed => write!(out, "{amount:.2} ×"),
            Unit::Cost => write!(out, "{amount:.2} × the time"),
        }
    }
}

/// Three digits in the largest unit that leaves something before the point.
fn scaled(
    out: &mut fmt::Formatter<'_>,
    amount: f64,
    step: f64,
    units: &[(f64, &str)],
) -> fmt::Result {
    // Nothing is nothing of the whole unit.
    let fits = |(size, _): &&(f64, &str)| match amount {
        0.0 => *size == 1.0,
        _ => amount < size * step * 0.9995,
    };
    let Some((size, unit)) = units.iter().find(fits).or(units.last()) else { return Ok(()) };
    let shown = amount / size;
    let digits = match shown {
        _ if (shown - shown.round()).abs() <= 1e-9 * shown => 0,
        _ if shown >= 100.0 => 0,
        _ if shown >= 10.0 => 1,
        _ => 2,
    };
    write!(out, "{shown:.digits$} {unit}")
}
