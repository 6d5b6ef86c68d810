//! Questions on their way to a person.

use cofferdam_agent::hook::{Approval, Approver, Decision, Question};
use cofferdam_agent::tool::Call;
use cofferdam_app::approve::{TimeLimited, channel};
use futures::future::join;
use futures::{FutureExt as _, pin_mut};
use std::sync::Arc;
use std::time::Duration;

fn call() -> Call {
    Call { id: "c1".into(), name: "write_file".into(), arguments: Arc::default() }
}

fn question() -> Question {
    Question { title: "Really?".into(), message: String::new() }
}

fn approval<'a>(question: &'a Question, call: &'a Call) -> Approval<'a> {
    Approval { hook: "guard", question, plugin: "files", call }
}

#[tokio::test]
async fn a_question_comes_out_with_its_call_and_takes_an_answer() {
    let (approver, mut questions) = channel();
    let (question, call) = (question(), call());
    let person = async {
        let open = questions.next().await.expect("a question");
        assert_eq!((&*open.hook, &*open.plugin, &*open.call.id), ("guard", "files", "c1"));
        open.answer(Decision::Declined { reason: Some("not today".into()) });
        // The next one is let go.
        drop(questions.next().await);
    };
    let asker = async {
        let first = approver.approve(approval(&question, &call)).await;
        let second = approver.approve(approval(&question, &call)).await;
        (first, second)
    };
    let ((first, second), ()) = join(asker, person).await;
    assert_eq!(first, Decision::Declined { reason: Some("not today".into()) });
    assert_eq!(second, Decision::Unanswered { why: "it was left unanswered".into() });
    drop(questions);
    let nobody = approver.approve(approval(&question, &call)).await;
    assert_eq!(nobody, Decision::Unanswered { why: "there is nobody to ask".into() });
}

#[tokio::test]
async fn a_question_that_is_taken_back_is_seen_to_be() {
    let (approver, mut questions) = channel();
    let (question, call) = (question(), call());
    let asked = approver.approve(approval(&question, &call));
    let mut open = questions.next().await.expect("a question");
    assert!(open.taken_back().now_or_never().is_none());
    drop(asked);
    open.taken_back().await;
    assert!(open.is_taken_back());
    open.answer(Decision::Approved);
}

#[tokio::test(start_paused = true)]
async fn a_question_waits_as_long_as_it_may_and_no_longer() {
    let (approver, mut questions) = channel();
    let limited = TimeLimited::new(approver, 60);
    let (question, call) = (question(), call());
    let asked = limited.approve(approval(&question, &call));
    pin_mut!(asked);
    assert!(tokio::time::timeout(Duration::from_secs(59), &mut asked).await.is_err());
    let late = tokio::time::timeout(Duration::from_secs(2), asked).await.expect("a decision");
    let Decision::Unanswered { why } = late else { panic!("{late:?}") };
    assert!(why.contains("within 60 s") && why.contains("timeout_seconds"), "{why}");
    assert!(questions.next().await.expect("a question").is_taken_back());
    let yes = limited.approve(approval(&question, &call));
    let answers = async {
        tokio::time::sleep(Duration::from_secs(59)).await;
        questions.next().await.expect("a question").answer(Decision::Approved);
    };
    assert_eq!(join(yes, answers).await.0, Decision::Approved);
}
