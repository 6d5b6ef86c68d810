use super::{Script, Scripted};
use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::{AssistantBlock, Content, Message, StopReason, ToolResultMessage};
use cofferdam_agent::model::{Model, Request, Step, Thinking};
use futures::StreamExt;
use serde_json::{Value, json};
use std::sync::Arc;

fn request(results: &[(&str, &str, Value)]) -> Request {
    let message = |(id, text, details): &(&str, &str, Value)| {
        Arc::new(Message::ToolResult(ToolResultMessage {
            tool_call_id: (*id).into(),
            tool_name: "t".into(),
            content: vec![Content::Text((*text).into())],
            details: Some(details.clone()),
            is_error: false,
        }))
    };
    Request {
        system_prompt: "".into(),
        messages: Arc::new(results.iter().map(message).collect()),
        tools: Arc::default(),
        thinking: Thinking::Off,
        credential: None,
    }
}

/// Plays one answer and shows its steps, one a line.
async fn show(script: Value, request: Request, abort: &AbortSignal) -> String {
    let model = Scripted::new(Script::parse(&script.to_string()).unwrap()).unwrap();
    let mut lines = Vec::new();
    let mut stream = model.stream(request, abort.clone());
    while let Some(step) = stream.next().await {
        lines.push(match step {
            Step::Start => "start".into(),
            Step::TextDelta { delta, .. } => format!("text {delta:?}"),
            Step::ToolCallDelta { delta, .. } => format!("args {delta:?}"),
            Step::Done(message) => {
                format!("done {:?} {}", message.stop_reason, content(&message.content))
            }
            Step::TextStart { index } | Step::ToolCallStart { index, .. } => format!("[{index}"),
            Step::TextEnd { index, .. } | Step::ToolCallEnd { index, .. } => format!("{index}]"),
            other => format!("{other:?}"),
        });
    }
    lines.join("\n")
}

fn content(blocks: &[AssistantBlock]) -> String {
    let one = |block: &AssistantBlock| match block {
        AssistantBlock::Text(block) => block.text.clone(),
        AssistantBlock::Thinking(block) => block.thinking.clone(),
        AssistantBlock::ToolCall(call) => {
            format!("{}({})", call.name, serde_json::to_string(&*call.arguments).unwrap())
        }
    };
    blocks.iter().map(one).collect::<Vec<_>>().join(" | ")
}

#[tokio::test]
async fn deltas_come_in_the_chunks_of_the_script() {
    let script = json!([{"stream": "deltas", "content": [
        {"type": "text", "text": "hello", "chunks": ["hel", "lo"]},
        {"type": "tool_call", "id": "a", "name": "t", "arguments": {"x": 1}}]}]);
    assert_eq!(
        show(script, request(&[]), &AbortSignal::new()).await,
        "start\n[0\ntext \"hel\"\ntext \"lo\"\n0]\n[1\nargs \"{\\\"x\\\":1}\"\n1]\n\
         done ToolUse hello | t({\"x\":1})"
    );
}

#[tokio::test]
async fn references_take_text_and_typed_values_from_results() {
    let script = json!([{"stream": "none", "content": [
        {"type": "text", "text": "a=${results.a} n=${results.a.details.n.0} $${kept}"},
        {"type": "tool_call", "id": "b", "name": "t", "arguments": {
            "n": "${results.a.details.n.0}", "s": "no ${results.a.text}"}}]}]);
    let results = [("a", "one", json!({"n": [7]}))];
    assert_eq!(
        show(script, request(&results), &AbortSignal::new()).await,
        "done ToolUse a=one n=7 ${kept} | t({\"n\":7,\"s\":\"no one\"})"
    );
}

#[tokio::test]
async fn a_reference_to_nothing_is_an_error_that_names_it() {
    for (text, want) in [
        ("${results.zz}", "refers to the result of call `zz`, and there is none"),
        (
            "${results.a.details.q}",
            "refers to `results.a.details.q`, and the result has no such part",
        ),
        ("${other}", "refers to `other`: references begin with `results.`"),
        ("${results.a", "has a `${` without its `}`: ${results.a"),
    ] {
        let script = json!([{"content": [{"type": "text", "text": text}]}]);
        let model = Scripted::new(Script::parse(&script.to_string()).unwrap()).unwrap();
        let steps: Vec<Step> =
            model.stream(request(&[("a", "one", json!({}))]), AbortSignal::new()).collect().await;
        let [Step::Done(message)] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!(message.stop_reason, StopReason::Error);
        assert_eq!(
            message.error_message.as_deref(),
            Some(&*format!("answer 1 of the script {want}"))
        );
    }
}

#[tokio::test]
async fn an_abort_ends_an_answer_with_what_was_sent() {
    let abort = AbortSignal::new();
    // Far longer than any test: only the abort can end the pause.
    let script = json!([{"stream": "deltas", "pauses": [{"after_chunk": 2, "steps": [{"sleep_ms": 3_600_000}]}],
        "content": [
            {"type": "text", "text": "one"},
            {"type": "tool_call", "id": "a", "name": "t", "arguments_text": "{\"x\":1,\"y\":2}",
             "chunks": ["{\"x\":1,\"y", "\":2}"]}]}]);
    let stop = abort.clone();
    let shown = show(script, request(&[]), &abort);
    let (shown, ()) = tokio::join!(shown, async move { stop.cancel() });
    assert!(
        shown.ends_with("args \"{\\\"x\\\":1,\\\"y\"\ndone Aborted one | t({\"x\":1})"),
        "{shown}"
    );
}

#[tokio::test]
async fn an_aborted_call_uses_up_no_answer_and_an_empty_script_says_so() {
    let model = Scripted::new(Script::parse(r#"[{"content": []}]"#).unwrap()).unwrap();
    let aborted = AbortSignal::new();
    aborted.cancel();
    let _: Vec<Step> = model.stream(request(&[]), aborted).collect().await;
    assert_eq!(model.used(), 0);
    let _: Vec<Step> = model.stream(request(&[]), AbortSignal::new()).collect().await;
    let steps: Vec<Step> = model.stream(request(&[]), AbortSignal::new()).collect().await;
    let [Step::Done(message)] = &steps[..] else { panic!("{steps:?}") };
    let problem = message.error_message.as_deref().unwrap();
    assert!(problem.contains("1 answers") && problem.contains("model call 2"), "{problem}");
}

#[test]
fn what_is_no_script_is_refused_with_the_reason() {
    for (text, want) in [
        ("{}", "a script is a JSON list of answers"),
        (r#"[{"contents": []}]"#, "unknown field `contents`"),
        (r#"[{"stop_reason": "done"}]"#, "stop_reason `done` is none of"),
        (r#"[{"content": [{"type": "image"}]}]"#, "unknown variant `image`"),
    ] {
        let problem = Script::parse(text).unwrap_err().to_string();
        assert!(problem.contains(want), "{problem}");
    }
    let unknown = Script::parse(r#"[{"before": [{"dance": 1}]}]"#).unwrap();
    let problem = Scripted::new(unknown).err().unwrap().to_string();
    assert!(problem.starts_with("answer 1 of the script: {\"dance\":1} is no step"), "{problem}");
}

#[tokio::test]
async fn the_documented_script_plays() {
    let page = include_str!("../../../docs/models.md");
    let script = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let model = Scripted::new(Script::parse(script).unwrap()).unwrap();
    let mut ends = Vec::new();
    for _ in 0..3 {
        let steps: Vec<Step> = model
            .stream(request(&[("c1", "# Cofferdam", json!({}))]), AbortSignal::new())
            .collect()
            .await;
        let Some(Step::Done(message)) = steps.last() else { panic!("{steps:?}") };
        ends.push((message.stop_reason, message.usage.output, content(&message.content)));
    }
    let begins = ends[1].2.clone();
    assert_eq!(begins, "It begins: # Cofferdam");
    let reasons: Vec<_> = ends.iter().map(|(reason, tokens, _)| (*reason, *tokens)).collect();
    let wanted = [(StopReason::ToolUse, 20), (StopReason::Length, 0), (StopReason::Error, 0)];
    assert_eq!(reasons, wanted);
}
