//! The script of a scenario: makes the agent, carries out the entries one after the other, and writes
//! what is left to write at the end.

use super::cast::Cast;
use super::listener::Listener;
use super::model::{ScriptedModel, thinking};
use super::print::digest;
use super::read::{message, messages, texts_of_message};
use super::rules::{list, texts};
use super::steps::{Party, outcome, queue_mode};
use super::world::World;
use cofferdam_agent::config::{
    ContextTransform, Conversion, Credentials, Guards, Messages, ToolExecution,
};
use cofferdam_agent::message::{Message, UserMessage};
use cofferdam_agent::model::Secret;
use cofferdam_agent::{Agent, AgentConfig, AgentError, Settings};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How long what runs beside the script may take after it.
const BACKGROUND: Duration = Duration::from_secs(2);

pub(super) async fn run(world: &Arc<World>, cast: Cast) {
    let agent = agent(world, cast);
    world.set_agent(agent.clone());
    let _listener = agent.subscribe(Arc::new(Listener::new(world)));
    // Entries that are tied to an event are the listener's.
    for text in texts(&world.scenario["steering"]) {
        agent.steer(text);
    }
    for text in texts(&world.scenario["follow_up"]) {
        agent.follow_up(text);
    }
    let background = background(world);
    for (index, entry) in list(&world.scenario["prompts"]).iter().enumerate() {
        world.pause().await;
        let (name, tried) = carry_out(world, &agent, entry).await;
        let mut record = json!({"rec": "op", "n": index + 1, "op": name});
        outcome(&mut record, &tried);
        world.record(record);
        world.open_gate(format!("op#{}", index + 1));
    }
    let _ = tokio::time::timeout(BACKGROUND, background).await;
    close(world, &agent);
}

fn agent(world: &Arc<World>, cast: Cast) -> Agent {
    let toolset = match world.config("active_tools") {
        Value::Array(_) => {
            let active = texts(world.config("active_tools"));
            cast.toolset.subset(|name| active.iter().any(|active| active == name))
        }
        _ => cast.toolset,
    };
    let prompt = world.config("system_prompt").as_str().unwrap_or("You are under test.");
    let mut settings = Settings::new(Arc::new(ScriptedModel { world: world.clone() }))
        .with_toolset(toolset)
        .with_system_prompt(prompt);
    settings.thinking = thinking(world.config("thinking_level").as_str().unwrap_or("off"));
    let mut config = AgentConfig::new(settings);
    if world.config("tool_execution") == "sequential" {
        config.tool_execution = ToolExecution::Sequential;
    }
    config.before = cast.before;
    config.after = cast.after;
    config.steering_mode = queue_mode(world.config("steering_mode"));
    config.follow_up_mode = queue_mode(world.config("follow_up_mode"));
    config.guards = Guards::NONE;
    config.messages = messages(world.config("messages")).into_iter().map(Arc::new).collect();
    if let Some(last) = world.config("keep_last").as_u64() {
        config.transform = Some(Arc::new(KeepLast(usize::try_from(last).unwrap_or(usize::MAX))));
    }
    if world.config("map_roles").is_object() {
        config.conversion = Some(Arc::new(MapRoles(world.clone())));
    }
    if world.config("api_keys").is_array() {
        config.credentials = Some(Arc::new(Keys(world.clone())));
    }
    Agent::new(config)
}

/// Starts what runs beside the script.
fn background(world: &Arc<World>) -> impl Future<Output = ()> + use<> {
    let all = list(&world.scenario["background"]).iter().map(|steps| {
        let (world, steps) = (world.clone(), steps.clone());
        tokio::spawn(async move {
            Party::plain(&world, None).obey(&steps).await;
        })
    });
    let all: Vec<_> = all.collect();
    async {
        futures::future::join_all(all).await;
    }
}

async fn carry_out(
    world: &Arc<World>,
    agent: &Agent,
    entry: &Value,
) -> (String, Result<(), AgentError>) {
    let Some(op) = entry.get("op").and_then(Value::as_str) else {
        let tried = agent.prompt(prompt(entry)).await.map(drop);
        return ("prompt".into(), tried);
    };
    let tried = match op {
        "continue" => agent.continue_run().await.map(drop),
        "reset" => agent.reset(),
        "abort" => {
            agent.abort();
            Ok(())
        }
        "wait_for_idle" => {
            agent.wait_for_idle().await;
            Ok(())
        }
        // The prompt is a field of each request here, so there is no system message to keep.
        "set_messages" => {
            agent.set_messages(messages(&entry["messages"]).into_iter().map(Arc::new).collect())
        }
        "steps" => {
            Party::plain(world, None).obey(&entry["steps"]).await;
            Ok(())
        }
        other => panic!("unknown operation {other:?}"),
    };
    (op.to_owned(), tried)
}

fn prompt(entry: &Value) -> Vec<Message> {
    match entry {
        Value::String(text) => vec![Message::from(text.as_str())],
        entry if entry.get("messages").is_some() => messages(&entry["messages"]),
        entry => message(entry).into_iter().collect(),
    }
}

fn close(world: &World, agent: &Agent) {
    let queued = agent.next_queued();
    let mut book = world.book();
    book.close_tools();
    let messages = agent.messages();
    let transcript = book.messages(messages.iter().map(|message| &**message));
    book.push(json!({"rec": "transcript", "messages": transcript}));
    let mut state = json!({
        "rec": "state",
        "running": agent.is_running(),
        "pending_tool_calls": agent.pending_tool_calls(),
        "queued": !queued.is_empty(),
        "next_queued": book.messages(&queued),
    });
    if let Some(error) = agent.last_error() {
        state["error_message"] = error.into();
    }
    book.push(state);
}

/// Keeps the last messages of the context.
struct KeepLast(usize);

impl ContextTransform for KeepLast {
    fn transform<'a>(
        &'a self,
        messages: Messages,
        _abort: &'a cofferdam_agent::AbortSignal,
    ) -> BoxFuture<'a, Messages> {
        let from = messages.len().saturating_sub(self.0);
        Box::pin(std::future::ready(Arc::new(messages[from..].to_vec())))
    }
}

/// Drops roles, or makes user messages of them.
struct MapRoles(Arc<World>);

impl Conversion for MapRoles {
    fn convert<'a>(&'a self, messages: Messages) -> BoxFuture<'a, Messages> {
        let convert = |message: &Arc<Message>| {
            let role = digest(message);
            let role = role.split(':').next().unwrap_or_default();
            match (self.0.config("map_roles").get(role), &**message) {
                (Some(Value::String(_)), message) => {
                    let text = texts_of_message(message).join("\n");
                    Some(Arc::new(Message::User(UserMessage::text(text))))
                }
                (Some(_), _) | (None, Message::Custom(_)) => None,
                (None, _) => Some(message.clone()),
            }
        };
        Box::pin(std::future::ready(Arc::new(messages.iter().filter_map(convert).collect())))
    }
}

/// One key for each model call.
struct Keys(Arc<World>);

impl Credentials for Keys {
    fn resolve(&self) -> BoxFuture<'_, Option<Secret>> {
        Box::pin(async {
            self.0.pause().await;
            let nth = usize::try_from(self.0.book().count("key")).unwrap_or(usize::MAX);
            self.0.config("api_keys").get(nth - 1).and_then(Value::as_str).map(Secret::new)
        })
    }
}
