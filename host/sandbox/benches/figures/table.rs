//! One row for each question: what was measured, what was hoped for, what it is compared with.
//!
//! `--json` prints a row as a line of JSON, for `cargo xtask bench`, which lays out the table.

use serde::Serialize;
use std::time::Duration;

/// An answered question.
#[derive(Serialize)]
pub(crate) struct Row {
    question: String,
    figure: String,
    target: String,
    /// What was measured beside it in the same run, and how many times as much the figure is.
    against: String,
    /// None where there is no target.
    met: Option<bool>,
    #[serde(skip)]
    value: Quantity,
}

/// A figure with its unit.
#[derive(Clone, Copy)]
pub(crate) enum Quantity {
    Micros(f64),
    KiB(f64),
    Count(f64),
    Percent(f64),
}

use Quantity::{Count, KiB, Micros, Percent};

impl Quantity {
    fn number(self) -> f64 {
        match self {
            Micros(value) | KiB(value) | Count(value) | Percent(value) => value,
        }
    }
}

impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Three digits are more than any figure here is worth.
        let three = |value: f64| match value {
            v if v < 10.0 => format!("{v:.2}"),
            v if v < 100.0 => format!("{v:.1}"),
            v => format!("{v:.0}"),
        };
        match *self {
            Micros(value) if value < 1_000.0 => write!(f, "{} µs", three(value)),
            Micros(value) if value < 1_000_000.0 => write!(f, "{} ms", three(value / 1e3)),
            Micros(value) => write!(f, "{} s", three(value / 1e6)),
            KiB(value) => write!(f, "{} KiB", three(value)),
            Count(value) => write!(f, "{value:.0}"),
            Percent(value) => write!(f, "{value:.0} %"),
        }
    }
}

impl Row {
    /// A row without a target.
    pub(crate) fn new(question: impl Into<String>, value: Quantity) -> Self {
        Self {
            question: question.into(),
            figure: value.to_string(),
            target: String::new(),
            against: String::new(),
            met: None,
            value,
        }
    }

    /// With a target that is a figure.
    pub(crate) fn at_most(mut self, most: Quantity) -> Self {
        self.target = format!("≤ {most}");
        self.met = Some(self.value.number() <= most.number());
        self
    }

    /// With what it is compared with.
    pub(crate) fn beside(mut self, name: &str, baseline: Quantity) -> Self {
        let times = self.value.number() / baseline.number();
        self.against = format!("{times:.2} × {name} ({baseline})");
        self
    }

    /// With a target that is a multiple of what it is compared with.
    pub(crate) fn at_most_times(mut self, most: f64, name: &str, baseline: Quantity) -> Self {
        self.target = format!("≤ {most} × {name}");
        self.met = Some(self.value.number() <= most * baseline.number());
        self.beside(name, baseline)
    }

    /// Prints the row.
    pub(crate) fn print(self, json: bool) {
        if json {
            println!("{}", serde_json::to_string(&self).unwrap_or_default());
            return;
        }
        let verdict = match self.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "",
        };
        let Self { question, figure, target, against, .. } = self;
        println!("{question:<58} {figure:>10}  {target:<26} {against:<34} {verdict}");
    }
}

/// Measured times of one kind, in microseconds.
#[derive(Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// Takes one in.
    pub(crate) fn push(&mut self, time: Duration) {
        self.0.push(time.as_secs_f64() * 1e6);
    }

    /// The value below which so many of a hundred lie.
    pub(crate) fn percentile(&mut self, hundredth: f64) -> Quantity {
        self.0.sort_by(f64::total_cmp);
        let last = self.0.len().saturating_sub(1);
        let index = (last as f64 * hundredth / 100.0).round() as usize;
        Micros(self.0.get(index).copied().unwrap_or(f64::NAN))
    }

    pub(crate) fn median(&mut self) -> Quantity {
        self.percentile(50.0)
    }

    pub(crate) fn least(&mut self) -> Quantity {
        self.percentile(0.0)
    }
}
