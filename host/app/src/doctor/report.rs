//! What the self-test found.

use serde::Serialize;
use serde_json::Value;

/// Everything that was looked at, in order.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Report {
    /// The sections.
    pub sections: Vec<Section>,
}

/// Rows that belong together.
#[derive(Debug, Clone, Serialize)]
pub struct Section {
    /// What they are about: `engine`, `settings`, `limits`, `grants`, `compiled code`, `plugins`,
    /// `configuration`.
    pub title: &'static str,
    /// What was found.
    pub rows: Vec<Row>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The key of a limit or setting, a kind of grant, a plugin.
    pub subject: String,
    /// The value in force, where there is one.
    pub value: Option<String>,
    /// The value without configuration.
    pub default: Option<String>,
    /// What happened, in a sentence.
    pub found: String,
    /// What to do about it, where something is to be done.
    pub advice: Option<String>,
    /// What it means.
    pub verdict: Verdict,
}

/// What a row means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Worth knowing.
    Note,
    /// It works, and may not be what the operator means.
    Warning,
    /// It does not bite, or does not work.
    Failed,
}

impl Report {
    /// Whether nothing failed.
    pub fn is_sound(&self) -> bool {
        self.rows().all(|row| row.verdict != Verdict::Failed)
    }

    /// All rows of all sections.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.sections.iter().flat_map(|section| &section.rows)
    }

    /// The rows of one section; none if it was not looked at.
    pub fn section(&self, title: &str) -> &[Row] {
        let found = self.sections.iter().find(|section| section.title == title);
        found.map_or(&[], |section| &section.rows)
    }

    /// The report for programs.
    pub fn to_json(&self) -> Value {
        // Structs of texts have nothing that could fail.
        let mut report = serde_json::to_value(self).unwrap_or_default();
        report["sound"] = self.is_sound().into();
        report
    }

    pub(super) fn add(&mut self, section: Section, tell: &mut (dyn FnMut(&Section) + Send)) {
        tell(&section);
        self.sections.push(section);
    }
}

impl Row {
    pub(super) fn new(
        verdict: Verdict,
        subject: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self {
            subject: subject.into(),
            value: None,
            default: None,
            found: found.into(),
            advice: None,
            verdict,
        }
    }

    pub(super) fn ok(subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(Verdict::Ok, subject, found)
    }

    pub(super) fn note(subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(Verdict::Note, subject, found)
    }

    pub(super) fn warning(subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(Verdict::Warning, subject, found)
    }

    pub(super) fn failed(subject: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(Verdict::Failed, subject, found)
    }

    /// A proof: what happened, or what should have.
    pub(super) fn proof(subject: impl Into<String>, outcome: Result<String, String>) -> Self {
        match outcome {
            Ok(found) => Self::ok(subject, found),
            Err(found) => Self::failed(subject, found),
        }
    }

    pub(super) fn with_value(
        mut self,
        value: impl Into<String>,
        default: impl Into<String>,
    ) -> Self {
        self.value = Some(value.into());
        self.default = Some(default.into());
        self
    }

    pub(super) fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }
}
