//! The server and a client of the same crate, over a pair of streams in this process.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use cofferdam_agent::config::BeforeEntry;
use cofferdam_agent::hook::{BeforeHook, Hooked, HookedCall, Question, Refusal, Verdict};
use cofferdam_agent::message::{Content, Image};
use cofferdam_agent::testing::{FnTool, ScriptedModel};
use cofferdam_agent::tool::{ToolFailure, ToolResult};
use cofferdam_agent::toolset::Rules;
use cofferdam_agent::{AbortSignal, Agent, AgentConfig, Settings, Toolset};
use cofferdam_mcp::{Server, serve};
use futures::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientRequest, ProgressNotificationParam, Request,
};
use rmcp::service::{NotificationContext, PeerRequestOptions, RunningService};
use rmcp::{ClientHandler, RoleClient, ServiceExt as _};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

/// Decides by the name of the tool.
struct Doorman;

impl BeforeHook for Doorman {
    fn name(&self) -> &str {
        "doorman"
    }

    fn before<'a>(
        &'a self,
        hooked: HookedCall<'a>,
        _: &'a AbortSignal,
    ) -> BoxFuture<'a, Hooked<Verdict>> {
        let verdict = match &*hooked.call.name {
            "blocked" => Verdict::Block(Refusal { reason: "not today".into(), terminate: None }),
            "asked" => Verdict::Ask(Question { title: "Run it?".into(), message: String::new() }),
            _ => Verdict::Proceed,
        };
        Box::pin(std::future::ready(Ok(verdict).into()))
    }
}

fn agent(tools: impl IntoIterator<Item = FnTool>) -> Agent {
    let toolset = Toolset::new(tools.into_iter().map(FnTool::shared), Rules::Portable);
    let settings = Settings::new(Arc::new(ScriptedModel::default())).with_toolset(toolset);
    let mut config = AgentConfig::new(settings);
    config.before = vec![BeforeEntry::new(Arc::new(Doorman))];
    Agent::new(config)
}

/// A client that notes what it is told.
#[derive(Clone, Default)]
struct Client {
    progress: Arc<Mutex<Vec<(f64, String)>>>,
    changed: Arc<Notify>,
}

impl ClientHandler for Client {
    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.lock().unwrap().push((params.progress, params.message.unwrap_or_default()));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

struct Connected {
    client: RunningService<RoleClient, Client>,
    serving: JoinHandle<Result<(), cofferdam_mcp::ServeError>>,
}

async fn connect(server: &Server, client: Client) -> Connected {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(theirs);
    let serving = tokio::spawn(serve(server.clone(), input, output, AbortSignal::new()));
    Connected { client: client.serve(ours).await.unwrap(), serving }
}

fn params(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let mut params = CallToolRequestParams::new(tool);
    params.arguments = arguments.as_object().cloned();
    params
}

async fn call(client: &Connected, tool: &'static str, arguments: Value) -> CallToolResult {
    client.client.peer().call_tool(params(tool, arguments)).await.unwrap()
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

/// What a result says under `cofferdam/call`.
fn facts(result: &CallToolResult) -> &Value {
    &result.meta.as_ref().unwrap().0["cofferdam/call"]
}

#[tokio::test]
async fn tools_are_listed_as_they_are_declared() {
    let parameters = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    });
    let tool = FnTool::text("count", "1").with_parameters(parameters.clone());
    let connected = connect(&Server::new(agent([tool])), Client::default()).await;
    let capabilities = connected.client.peer().peer_info().unwrap().capabilities.clone();
    assert_eq!(capabilities.tools.unwrap().list_changed, Some(true));
    let tools = connected.client.peer().list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(
        (&*tools[0].name, tools[0].description.as_deref()),
        ("count", Some("The tool count"))
    );
    assert_eq!(json!(*tools[0].input_schema), parameters);
}

#[tokio::test]
async fn a_result_has_content_for_the_model_and_facts_beside_it() {
    let image = Image { media_type: "image/png".into(), data: Arc::from(&b"\x89PNG"[..]) };
    let result = ToolResult {
        content: vec![Content::Text("seen".into()), Content::Image(image)],
        details: Some(json!({"path": "a.png"})),
        ..ToolResult::default()
    };
    let tool = FnTool::new("look", move |_, _, _| std::future::ready(Ok(result.clone())));
    let connected = connect(&Server::new(agent([tool])), Client::default()).await;
    let result = call(&connected, "look", json!({})).await;
    assert_eq!((text(&result), result.is_error), ("seen", Some(false)));
    let image = result.content[1].as_image().unwrap();
    assert_eq!((&*image.data, &*image.mime_type), ("iVBORw==", "image/png"));
    // Clients show structured content to their models.
    assert_eq!(result.structured_content, None);
    assert_eq!(facts(&result)["details"], json!({"path": "a.png"}));
    assert!(facts(&result)["duration_ms"].is_number());
}

#[tokio::test]
async fn every_way_to_fail_is_a_result_and_the_server_goes_on() {
    let parameters = json!({
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
    });
    let tools = [
        FnTool::text("count", "counted").with_parameters(parameters),
        FnTool::text("blocked", "never"),
        FnTool::text("asked", "never"),
        FnTool::new("fails", |_, _, _| async {
            let ended_by = "time-limit".into();
            Err(ToolFailure { message: "too slow".into(), ended_by, details: None })
        }),
        FnTool::new("panics", |_, _, _| async { panic!("on purpose") }),
    ];
    let connected = connect(&Server::new(agent(tools)), Client::default()).await;
    for (tool, ended_by, says) in [
        ("blocked", "blocked", "not today"),
        ("asked", "not-approved", "there is nobody to ask"),
        ("fails", "time-limit", "too slow"),
        ("panics", "panic", "on purpose"),
        ("count", "invalid-arguments", "n"),
    ] {
        let result = call(&connected, tool, json!({})).await;
        assert_eq!(result.is_error, Some(true), "{tool}");
        assert_eq!(facts(&result)["ended_by"], ended_by, "{tool}");
        assert!(text(&result).contains(says), "{tool}: {}", text(&result));
    }
    let missing = connected.client.peer().call_tool(params("missing", json!({}))).await;
    let problem = missing.unwrap_err().to_string();
    assert!(problem.contains("There is no tool \"missing\""), "{problem}");
    assert_eq!(text(&call(&connected, "count", json!({"n": 1})).await), "counted");
}

#[tokio::test]
async fn progress_comes_in_order_before_the_result_and_what_is_late_is_dropped() {
    let kept = Arc::new(Mutex::new(None));
    let keep = kept.clone();
    let tool = FnTool::new("work", move |_, progress, _| {
        let keep = keep.clone();
        async move {
            for step in 1..=3 {
                progress.report(ToolResult::text(format!("step {step}")));
                progress.announced().await;
            }
            *keep.lock().unwrap() = Some(progress);
            Ok(ToolResult::text("worked"))
        }
    });
    let (server, client) = (Server::new(agent([tool])), Client::default());
    let connected = connect(&server, client.clone()).await;
    assert_eq!(text(&call(&connected, "work", json!({})).await), "worked");
    let late = kept.lock().unwrap().take().unwrap();
    late.report(ToolResult::text("too late"));
    assert_eq!(late.late(), 1);
    // A round trip later, whatever was sent has come.
    connected.client.peer().list_all_tools().await.unwrap();
    let progress = client.progress.lock().unwrap();
    assert_eq!(progress.last(), Some(&(3.0, "step 3".into())));
    assert!(progress.is_sorted_by(|one, other| one.0 < other.0), "{progress:?}");
}

#[tokio::test]
async fn a_cancelled_call_is_aborted_and_another_is_not() {
    let (began, aborted) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (begins, aborts) = (began.clone(), aborted.clone());
    let waits = FnTool::new("wait", move |_, _, abort| {
        let (began, aborted) = (begins.clone(), aborts.clone());
        async move {
            began.add_permits(1);
            abort.cancelled().await;
            aborted.add_permits(1);
            Err(ToolFailure::new("stopped"))
        }
    });
    let server = Server::new(agent([waits, FnTool::text("greet", "Hello.")]));
    let connected = connect(&server, Client::default()).await;
    let request = ClientRequest::CallToolRequest(Request::new(params("wait", json!({}))));
    let peer = connected.client.peer();
    let handle =
        peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await.unwrap();
    began.acquire().await.unwrap().forget();
    assert_eq!(text(&call(&connected, "greet", json!({})).await), "Hello.");
    assert_eq!(aborted.available_permits(), 0);
    handle.cancel(Some("enough".into())).await.unwrap();
    aborted.acquire().await.unwrap().forget();
    assert_eq!(text(&call(&connected, "greet", json!({})).await), "Hello.");
}

#[tokio::test]
async fn clients_are_told_that_the_list_changed_and_get_the_new_one() {
    let server = Server::new(agent([FnTool::text("old", "old")]));
    let (one, other) = (Client::default(), Client::default());
    let (first, second) =
        (connect(&server, one.clone()).await, connect(&server, other.clone()).await);
    // A round trip, so that the server has heard that they are ready.
    first.client.peer().list_all_tools().await.unwrap();
    second.client.peer().list_all_tools().await.unwrap();
    server.replace(agent([FnTool::text("new", "new")])).await;
    one.changed.notified().await;
    other.changed.notified().await;
    assert_eq!(first.client.peer().list_all_tools().await.unwrap()[0].name, "new");
    assert_eq!(text(&call(&second, "new", json!({})).await), "new");
}

#[tokio::test]
async fn the_end_of_input_ends_the_server_in_order() {
    let connected = connect(&Server::new(agent([])), Client::default()).await;
    connected.client.cancel().await.unwrap();
    connected.serving.await.unwrap().unwrap();
    // Nor is it a failure if nobody ever spoke.
    let server = Server::new(agent([]));
    let silent = serve(server, tokio::io::empty(), tokio::io::sink(), AbortSignal::new());
    silent.await.unwrap();
}
