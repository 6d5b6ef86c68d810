//! The agent from outside: what an embedder sees.

use cofferdam_agent::config::{Guards, ToolFilter};
use cofferdam_agent::message::{Content, Message};
use cofferdam_agent::testing::{FnTool, Recorder, ScriptedModel, answer, block_on};
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{Agent, AgentConfig, AgentError, EndReason, Settings, Toolset};
use serde_json::json;
use std::sync::Arc;

fn agent(model: ScriptedModel, tools: Vec<FnTool>) -> Agent {
    Agent::new(config(model, tools))
}

fn config(model: ScriptedModel, tools: Vec<FnTool>) -> AgentConfig {
    let toolset = Toolset::new(tools.into_iter().map(FnTool::shared), Rules::Portable);
    AgentConfig::new(Settings::new(Arc::new(model)).with_toolset(toolset))
}

fn result_texts(messages: &[Arc<Message>]) -> Vec<String> {
    let texts = messages.iter().filter_map(|message| match &**message {
        Message::ToolResult(result) => match result.content.first() {
            Some(Content::Text(text)) => Some(text.clone()),
            _ => Some(String::new()),
        },
        _ => None,
    });
    texts.collect()
}

#[test]
fn one_call_and_an_answer() {
    let model = ScriptedModel::new([answer::calls([("c1", "echo", json!({"a": 1}))])]);
    let agent = agent(model, vec![FnTool::text("echo", "hello")]);
    let recorder = Arc::new(Recorder::default());
    let _subscription = agent.subscribe(recorder.clone());
    let end = block_on(agent.prompt("go")).unwrap();
    assert_eq!(end.reason, EndReason::Finished);
    assert_eq!(result_texts(&end.messages), ["hello"]);
    assert_eq!(recorder.names().last(), Some(&"agent_end"));
    assert!(!agent.is_running());
}

#[test]
fn a_run_that_repeats_itself_ends_with_a_clear_message() {
    let calls = (0..100).map(|n| answer::calls([(n.to_string().as_str(), "echo", json!({}))]));
    let mut config = config(ScriptedModel::new(calls), vec![FnTool::text("echo", "again")]);
    config.guards = Guards { turns_max: Some(3), ..Guards::NONE };
    let agent = Agent::new(config);
    let end = block_on(agent.prompt("go")).unwrap();
    assert_eq!(end.reason, EndReason::TurnLimit(3));
    assert_eq!(agent.last_error().unwrap(), "the run was ended after 3 turns, its limit");
    assert_eq!(result_texts(&end.messages).len(), 3);
}

#[test]
fn a_panicking_tool_is_a_failed_call() {
    let model = ScriptedModel::new([answer::calls([("c1", "bad", json!({}))])]);
    let bad = FnTool::new("bad", |_, _, _| async { panic!("ouch") });
    let end = block_on(agent(model, vec![bad]).prompt("go")).unwrap();
    assert_eq!(result_texts(&end.messages), ["The tool failed: it panicked: ouch"]);
    assert_eq!(end.reason, EndReason::Finished);
}

#[test]
fn nothing_to_continue() {
    let agent = agent(ScriptedModel::default(), vec![]);
    assert!(matches!(block_on(agent.continue_run()), Err(AgentError::NothingToContinue)));
    block_on(agent.prompt("go")).unwrap();
    assert!(matches!(block_on(agent.continue_run()), Err(AgentError::AssistantTail)));
    agent.steer("more");
    assert_eq!(block_on(agent.continue_run()).unwrap().messages.len(), 2);
}

#[test]
fn two_tools_of_one_name_are_one_and_a_report_that_names_both() {
    let tools = [
        FnTool::text("Grep", "").of_plugin("files").shared(),
        FnTool::text("grep", "").of_plugin("search").shared(),
    ];
    let toolset = Toolset::new(tools, Rules::Portable);
    assert_eq!(toolset.len(), 1);
    let reason = &toolset.refused()[0].reason;
    assert!(reason.contains("\"files\"") && reason.contains("\"search\""), "{reason}");
}

#[test]
fn a_filter_takes_what_its_predicate_takes() {
    assert!(ToolFilter::All.takes("x"));
    assert!(!ToolFilter::matching(|name| name == "y").takes("x"));
}
