//! A row of the table, as the bench `figures` writes them too.

use serde::Deserialize;

/// An answered question, everything fit for people.
#[derive(Deserialize)]
pub(super) struct Row {
    pub(super) question: String,
    pub(super) figure: String,
    pub(super) target: String,
    pub(super) against: String,
    /// None where there is no target.
    pub(super) met: Option<bool>,
}

/// Above the rows.
pub(super) const HEAD: &str = "| question | figure | target | beside | |\n|---|---|---|---|---|";

impl Row {
    /// A time in milliseconds, with the most that it should be.
    pub(super) fn millis(question: &str, ms: f64, most: f64) -> Self {
        Self {
            question: question.to_owned(),
            figure: format!("{ms:.1} ms"),
            target: format!("≤ {most} ms"),
            against: String::new(),
            met: Some(ms <= most),
        }
    }

    /// Prints it, as Markdown that is read as it is as well.
    pub(super) fn print(self) {
        let verdict = match self.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "",
        };
        let Self { question, figure, target, against, .. } = self;
        println!("| {question:<58} | {figure:>9} | {target:<22} | {against:<34} | {verdict:<6} |");
    }
}
