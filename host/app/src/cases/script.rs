//! HTTP as the cases have it.

use cofferdam_sandbox::{HttpAnswer, HttpRequest, HttpScript};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// An answer to a request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// Which: `METHOD URL`, such as `GET https://api.example.com/v1`; `*` at the end stands for any
    /// rest. Answers to the same request are given in their order, the last for all that follow.
    pub request: String,
    /// The status.
    #[serde(default = "ok")]
    pub status: u16,
    /// Headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body.
    #[serde(default)]
    pub body: String,
}

fn ok() -> u16 {
    200
}

impl Exchange {
    pub(super) fn check(&self) -> Result<(), String> {
        let form = self.request.split_once(' ').is_some_and(|(method, url)| {
            method.bytes().all(|b| b.is_ascii_uppercase()) && url.contains("://")
        });
        if !form {
            return Err(format!(
                "`http.request` is METHOD URL, such as `GET https://api.example.com/v1`, not `{}`",
                self.request
            ));
        }
        if !(100..=599).contains(&self.status) {
            return Err(format!("`http.status` cannot be {}: it takes 100 to 599", self.status));
        }
        Ok(())
    }

    fn matches(&self, request: &str) -> bool {
        match self.request.strip_suffix('*') {
            Some(start) => request.starts_with(start),
            None => request == self.request,
        }
    }
}

/// The script that is played, which changes from case to case, and what was asked.
#[derive(Clone, Default)]
pub(super) struct Stage(Arc<Mutex<Play>>);

#[derive(Default)]
struct Play {
    /// With how often each was given.
    exchanges: Vec<(Exchange, u32)>,
    asked: Vec<String>,
    unanswered: Vec<String>,
}

impl Stage {
    /// The stand-in for the network.
    pub(super) fn script(&self) -> HttpScript {
        let stage = self.clone();
        HttpScript::new(move |request| stage.answer(&request))
    }

    /// Begins a case.
    pub(super) fn set(&self, exchanges: &[Exchange]) {
        let exchanges = exchanges.iter().map(|exchange| (exchange.clone(), 0)).collect();
        *self.play() = Play { exchanges, ..Play::default() };
    }

    /// What was asked since the case began, and what of it had no answer.
    pub(super) fn asked(&self) -> (Vec<String>, Vec<String>) {
        let play = self.play();
        (play.asked.clone(), play.unanswered.clone())
    }

    fn play(&self) -> std::sync::MutexGuard<'_, Play> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, request: &HttpRequest) -> Option<HttpAnswer> {
        let request = format!("{} {}", request.method, request.url);
        let mut play = self.play();
        play.asked.push(request.clone());
        let fitting: Vec<usize> = (0..play.exchanges.len())
            .filter(|&at| play.exchanges[at].0.matches(&request))
            .collect();
        let next = fitting.iter().copied().find(|&at| play.exchanges[at].1 == 0);
        let Some(at) = next.or(fitting.last().copied()) else {
            play.unanswered.push(request);
            return None;
        };
        let (exchange, given) = &mut play.exchanges[at];
        *given += 1;
        Some(HttpAnswer {
            status: exchange.status,
            headers: exchange.headers.clone().into_iter().collect(),
            body: exchange.body.clone().into_bytes(),
        })
    }
}
