//! Who is observed.

/// What is known of an agent before it does anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The provider of its model, such as `anthropic`, if it has a model.
    pub provider: Option<String>,
    /// The model by the provider's name for it.
    pub model: Option<String>,
    /// The id of the session that its runs are written to.
    pub session: Option<String>,
}
