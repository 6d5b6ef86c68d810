//! A run recorded and played again: the same steps and the same messages, without a server.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod serve;

use cofferdam_agent::AbortSignal;
use cofferdam_agent::message::AssistantMessage;
use cofferdam_agent::model::{Model, Request, Step, Thinking};
use cofferdam_providers::record::Recording;
use cofferdam_providers::scripted::{Script, Scripted};
use cofferdam_providers::{Dialect, Endpoint, Remote, Wire};
use futures::StreamExt;
use serve::{Reply, Server};
use std::path::Path;
use std::sync::Arc;

async fn steps(model: &dyn Model) -> Vec<Step> {
    let request = Request {
        system_prompt: "".into(),
        messages: Arc::new(vec![Arc::new("go".into())]),
        tools: Arc::default(),
        thinking: Thinking::Off,
        credential: None,
    };
    model.stream(request, AbortSignal::new()).collect().await
}

/// Without what says who answered.
fn anonymous(steps: Vec<Step>) -> Vec<Step> {
    let anonymous = |step| match step {
        Step::Done(message) => Step::Done(AssistantMessage {
            provider: String::new(),
            model: String::new(),
            ..message
        }),
        step => step,
    };
    steps.into_iter().map(anonymous).collect()
}

#[tokio::test]
async fn what_was_answered_is_played_again_to_the_byte() {
    let synthetic = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/sse/synthetic");
    let chat = Wire::Chat(Dialect::Generic);
    let odd = "data: {\"choices\":[{\"delta\":{\"content\":\"$${x} ${results.a} $\"}}]}\n\n\
               data: {\"choices\":[{\"delta\":{\"content\":\"{y}\"},\"finish_reason\":\"stop\"}]}\n\n";
    let answers = [
        (Wire::Anthropic, "anthropic/max-tokens-mid-tool-no-block-stop"),
        (Wire::Anthropic, "anthropic/eof-mid-tool"),
        (chat, "openai-chat/utf8-raw-multibyte"),
        (chat, "openai-chat/raw-control-chars-in-args"),
        (chat, "openai-chat/missing-index-fragments"),
    ];
    let mut bodies: Vec<(Wire, Vec<u8>)> = answers
        .iter()
        .map(|(wire, case)| (*wire, std::fs::read(synthetic.join(format!("{case}.sse"))).unwrap()))
        .collect();
    bodies.push((chat, odd.into()));
    let folder = tempfile::tempdir().unwrap();
    for (at, (wire, body)) in bodies.into_iter().enumerate() {
        let path = folder.path().join(format!("{at}.json"));
        let server = Server::start([Reply::events(body)]).await;
        let endpoint = Endpoint { base_url: server.url.clone(), ..Endpoint::new(wire, "m") };
        let model = Arc::new(Remote::new(endpoint).unwrap());
        let recording = Recording::new(model.clone(), &path).unwrap();
        let heard = steps(&recording).await;
        let script = Script::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let played = steps(&Scripted::new(script).unwrap()).await;
        // The script sends block by block; the last message and each block's pieces are the same.
        let heard = anonymous(heard);
        assert_eq!(anonymous(played).last(), heard.last());
        assert!(Recording::new(model, &path).is_err(), "a recording is not overwritten");
    }
}
