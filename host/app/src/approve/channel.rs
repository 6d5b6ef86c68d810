//! Questions as values: for an embedder whose person sits behind a wire or a view of its own.

use cofferdam_agent::hook::{Approval, Approver, Decision, Question};
use cofferdam_agent::tool::Call;
use futures::StreamExt as _;
use futures::channel::{mpsc, oneshot};
use futures::future::BoxFuture;
use std::fmt;
use std::sync::Arc;

/// An approver whose questions come out at the other end.
///
/// ```
/// use cofferdam_agent::hook::Decision;
///
/// let (approver, mut questions) = cofferdam_app::approve::channel();
/// let options = cofferdam_app::Options { approver: Some(approver), ..Default::default() };
/// let person = async move {
///     while let Some(open) = questions.next().await {
///         // Show `open.call` and `open.question` to somebody, then:
///         open.answer(Decision::declined());
///     }
/// };
/// # let _ = (options, person);
/// ```
pub fn channel() -> (Arc<dyn Approver>, Questions) {
    let (sender, receiver) = mpsc::unbounded();
    (Arc::new(Asker(sender)), Questions(receiver))
}

/// The end where questions come out. Once it is dropped, every question gets a no.
#[derive(Debug)]
pub struct Questions(mpsc::UnboundedReceiver<OpenQuestion>);

/// A question that waits for its answer. Dropped without one, it is a no.
pub struct OpenQuestion {
    /// The hook that asks.
    pub hook: String,
    /// What it asks, in its own words: untrusted if the hook is a plugin's.
    pub question: Question,
    /// The plugin of the tool; empty for a native one.
    pub plugin: String,
    /// The call with its final arguments.
    pub call: Call,
    sender: oneshot::Sender<Decision>,
}

struct Asker(mpsc::UnboundedSender<OpenQuestion>);

impl Questions {
    /// The next question; none once nobody can ask any more.
    pub async fn next(&mut self) -> Option<OpenQuestion> {
        self.0.next().await
    }
}

impl OpenQuestion {
    /// Answers. It is too late if the question was taken back.
    pub fn answer(self, decision: Decision) {
        // Nobody waits any more if this fails.
        let _ = self.sender.send(decision);
    }

    /// Ready once the question is taken back, because the run was aborted or time is up.
    pub async fn taken_back(&mut self) {
        self.sender.cancellation().await;
    }

    /// Whether the question was taken back.
    pub fn is_taken_back(&self) -> bool {
        self.sender.is_canceled()
    }
}

impl Approver for Asker {
    fn approve<'a>(&'a self, approval: Approval<'a>) -> BoxFuture<'a, Decision> {
        let (sender, answer) = oneshot::channel();
        let question = OpenQuestion {
            hook: approval.hook.into(),
            question: approval.question.clone(),
            plugin: approval.plugin.into(),
            call: approval.call.clone(),
            sender,
        };
        let sent = self.0.unbounded_send(question);
        Box::pin(async move {
            let nobody = |why: &str| Decision::Unanswered { why: why.into() };
            match sent {
                Ok(()) => answer.await.unwrap_or_else(|_| nobody("it was left unanswered")),
                Err(_) => nobody("there is nobody to ask"),
            }
        })
    }
}

impl fmt::Debug for OpenQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenQuestion")
            .field("hook", &self.hook)
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}
