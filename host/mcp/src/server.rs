//! One server for all its clients: lists the tools, runs their calls, tells when the list changed.

use crate::progress::Reporter;
use crate::wire;
use cofferdam_agent::Agent;
use cofferdam_agent::event::ended_by;
use cofferdam_agent::message::ToolCall;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A server of an agent's tools; clones are handles to the same one.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
}

struct Shared {
    agent: Mutex<Agent>,
    /// Numbers the calls.
    calls: AtomicU64,
    /// Whom to tell of a change. A client of the protocol's later versions subscribes instead.
    clients: Mutex<Vec<Peer<RoleServer>>>,
    /// Marked at each change of the tools.
    changes: watch::Sender<()>,
}

impl Server {
    /// Serves the tools of this agent. Its questions go to its approver, if it has one.
    pub fn new(agent: Agent) -> Self {
        let shared = Shared {
            agent: Mutex::new(agent),
            calls: AtomicU64::new(0),
            clients: Mutex::default(),
            changes: watch::Sender::new(()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Serves another agent from the next call on, and tells the clients that the list of tools
    /// changed. Running calls end with the old one.
    pub async fn replace(&self, agent: Agent) {
        *lock(&self.shared.agent) = agent;
        self.shared.changes.send_replace(());
        for client in self.clients() {
            // One that is gone needs no telling.
            let _ = client.notify_tool_list_changed().await;
        }
    }

    fn agent(&self) -> Agent {
        lock(&self.shared.agent).clone()
    }

    /// The clients that are still there.
    fn clients(&self) -> Vec<Peer<RoleServer>> {
        let mut clients = lock(&self.shared.clients);
        clients.retain(|client| !client.is_transport_closed());
        clients.clone()
    }

    fn tools(&self) -> Vec<Tool> {
        let settings = self.agent().settings();
        settings.toolset.declarations().iter().map(|declaration| wire::tool(declaration)).collect()
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let this = Implementation::new("cofferdam", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities).with_server_info(this)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    /// A tool that is not there is a mistake of the client; every other end of a call is a result,
    /// for its model to see.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let number = self.shared.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let call = ToolCall {
            id: format!("mcp-{number}"),
            name: request.name.into_owned(),
            arguments: Arc::new(request.arguments.unwrap_or_default()),
            malformed: None,
            signature: None,
        };
        let reporter = Reporter::new(context.meta.get_progress_token(), context.peer);
        let end = self.agent().call(call, &context.ct, &reporter).await;
        match end.ended_by.as_deref() {
            Some(ended_by::UNKNOWN_TOOL | ended_by::REFUSED_TOOL) => {
                Err(ErrorData::invalid_params(wire::text(&end.result), None))
            }
            _ => Ok(wire::result(&end).into()),
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.clients();
        lock(&self.shared.clients).push(context.peer);
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.shared.changes.subscribe();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.changed() => if changed.is_err() {
                    return Ok(());
                }
            }
            if context.sink().notify_tool_list_changed().await.is_err() {
                return Ok(());
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
