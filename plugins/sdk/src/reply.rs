//! What a tool answers: content for the model, details for programs, a vote on ending the run.

use serde_json::Value;

/// One piece of what the model, or a person, gets to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Plain text or Markdown.
    Text(String),
    /// An image. Reaches the model where it takes images, else a placeholder stands for it.
    Image {
        /// Such as `image/png`.
        media_type: String,
        /// The bytes themselves, not base64.
        data: Vec<u8>,
    },
    /// A kind of content that this version of the contract has no case for.
    Other {
        /// Such as `audio` or `resource-link`.
        kind: String,
        /// What there is to say about it. A JSON document as text.
        data: String,
    },
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// The result of a call. A tool that only has text to say may return a `String` instead.
///
/// ```
/// use cofferdam_plugin::{Reply, json};
///
/// let reply = Reply::text("3 files changed").details(json!({ "changed": 3 }));
/// assert_eq!(reply.to_text(), "3 files changed");
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// What the model sees. Above the result limit the host cuts it and marks the cut.
    pub content: Vec<Content>,
    /// Structured facts for interfaces and logs; never sent to the model.
    pub details: Option<Value>,
    /// True if the call failed but still has content to show.
    pub is_error: bool,
    /// The vote on stopping the agent after this batch; it stops only if every result of the
    /// batch asks for it.
    pub terminate: Option<bool>,
}

impl Reply {
    /// A reply of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().and(text.into())
    }

    /// A reply of one image. `media_type` is such as `image/png`, `data` the bytes themselves.
    pub fn image(media_type: impl Into<String>, data: impl Into<Vec<u8>>) -> Self {
        Self::default().and(Content::Image { media_type: media_type.into(), data: data.into() })
    }

    /// One more piece of content.
    #[must_use]
    pub fn and(mut self, content: impl Into<Content>) -> Self {
        self.content.push(content.into());
        self
    }

    /// Structured facts for interfaces and logs; the model does not see them.
    #[must_use]
    pub fn details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Marks a call that failed but still has content to show. Without content, return a
    /// [`Failure`](crate::Failure) instead.
    #[must_use]
    pub fn error(mut self) -> Self {
        self.is_error = true;
        self
    }

    /// Votes on stopping the agent after this batch of calls.
    #[must_use]
    pub fn terminate(mut self, vote: bool) -> Self {
        self.terminate = Some(vote);
        self
    }

    /// The text pieces, joined by line ends: for tests and for hooks that look at a result.
    pub fn to_text(&self) -> String {
        let text = |content: &Content| match content {
            Content::Text(text) => Some(text.clone()),
            _ => None,
        };
        self.content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
    }
}

impl From<String> for Reply {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for Reply {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<()> for Reply {
    /// A tool that has nothing to say.
    fn from((): ()) -> Self {
        Self::default()
    }
}
