//! What a call cost, as its runner measured it. The loop carries receipts from the tools and hooks
//! to the events and the journal; it never looks into one, and a model never sees one.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// The bill of one call of a tool or hook.
pub trait Receipt: Debug + Send + Sync + 'static {
    /// The bill as JSON, for events, session files and people.
    fn to_json(&self) -> serde_json::Value;

    /// For a consumer that knows the concrete type.
    fn as_any(&self) -> &dyn Any;
}

/// A receipt that several events and records share.
pub type SharedReceipt = Arc<dyn Receipt>;
