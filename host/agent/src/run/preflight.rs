//! What a call passes before it runs, always one call at a time in source order: lookup,
//! preparation, validation, before-hooks, approval. The run may be aborted between any two steps,
//! and most likely while a person is asked (reference issue 4276).

use super::Walk;
use super::batch::OneCall;
use super::finish::Finished;
use crate::args::{ArgsError, Prepared, Valid};
use crate::config::{BeforeEntry, BeforeFailure, Rewrites};
use crate::event::{HookAction, HookRecord, ended_by};
use crate::guarded::guarded;
use crate::hook::{Approval, Decision, Hooked, HookedCall, Question, Refusal, Verdict};
use crate::receipt::SharedReceipt;
use crate::refusal;
use crate::tool::Call;
use crate::toolset::{Entry, Lookup};
use std::sync::Arc;

/// Where preflight leads.
pub(super) enum Preflight<'b> {
    /// The call may run.
    Ready(Ready<'b>),
    /// It is final without having run. No after-hook sees it.
    Refused(Finished),
}

/// A call that may run. Only preflight makes one.
pub(super) struct Ready<'b> {
    pub(super) one: OneCall<'b>,
    pub(super) entry: &'b Arc<Entry>,
    /// With the arguments that the tool gets.
    pub(super) call: Call,
    /// What the before-hooks did.
    pub(super) records: Vec<HookRecord>,
}

/// The chain of before-hooks on its way through one call.
struct Chain {
    call: Call,
    records: Vec<HookRecord>,
    questions: Vec<(String, Question)>,
}

/// Why a call ends in the chain.
enum Stop {
    Failed(String),
    Blocked(Refusal),
    Aborted,
    NotApproved(Decision),
}

impl Walk<'_> {
    /// The call must have been announced. One call at a time, whoever asks: no hook is asked about
    /// two calls at once, and no person either.
    pub(super) async fn preflight<'b>(&self, one: OneCall<'b>) -> Preflight<'b> {
        let Some(_turn) = self.abort.run_until_cancelled(self.agent.preflight.lock()).await else {
            return Preflight::refused(ended_by::ABORTED, refusal::aborted());
        };
        if self.abort.is_cancelled() {
            return Preflight::refused(ended_by::ABORTED, refusal::aborted());
        }
        let name = &one.call.name;
        let entry = match one.all.toolset.lookup(name) {
            Lookup::Found(entry) => entry,
            Lookup::Refused(refused) => {
                let text = refusal::refused_tool(name, &refused.reason);
                return Preflight::refused(ended_by::REFUSED_TOOL, text);
            }
            Lookup::Unknown => {
                let offered = one.all.toolset.declarations().iter().map(|d| d.name.as_str());
                let text = refusal::unknown_tool(name, offered);
                return Preflight::refused(ended_by::UNKNOWN_TOOL, text);
            }
        };
        let prepared = match self.prepared(one, entry).await {
            Ok(prepared) => prepared,
            Err(problem) => return Preflight::refused(ended_by::PREPARATION, problem),
        };
        if self.abort.is_cancelled() {
            return Preflight::refused(ended_by::ABORTED, refusal::aborted());
        }
        match self.validated(one, entry, prepared) {
            Ok(valid) => self.hooked(one, entry, valid).await,
            Err(error) => {
                let code = match error {
                    ArgsError::Malformed(_) => ended_by::MALFORMED_ARGUMENTS,
                    ArgsError::Invalid { .. } => ended_by::INVALID_ARGUMENTS,
                };
                Preflight::refused(code, error.for_model(name, &one.call.arguments))
            }
        }
    }

    /// The sanctioned place for repairs: before validation, so that its output gets checked (seed:
    /// "Mutated arguments skip revalidation").
    async fn prepared(&self, one: OneCall<'_>, entry: &Entry) -> Result<Prepared, String> {
        let received = &one.call.arguments;
        let preparation = guarded(async || match entry.tool.prepare(received, self.abort) {
            Some(preparation) => preparation.await.map(Prepared::new),
            None => Ok(Prepared::from(received)),
        });
        match preparation.await {
            Ok(prepared) => prepared,
            Err(panic) => Err(refusal::panicked("The preparation of the arguments", &panic)),
        }
    }

    fn validated(
        &self,
        one: OneCall<'_>,
        entry: &Entry,
        prepared: Prepared,
    ) -> Result<Valid, ArgsError> {
        if let Some(malformed) = &one.call.malformed {
            return Err(ArgsError::Malformed(malformed.clone()));
        }
        checked(one, entry, prepared)
    }

    async fn hooked<'b>(
        &self,
        one: OneCall<'b>,
        entry: &'b Arc<Entry>,
        valid: Valid,
    ) -> Preflight<'b> {
        let call = Call {
            id: one.call.id.as_str().into(),
            name: one.call.name.as_str().into(),
            arguments: valid.into_inner(),
        };
        let mut chain = Chain { call, records: Vec::new(), questions: Vec::new() };
        match self.pass(&mut chain, one, entry).await {
            Ok(()) => {
                Preflight::Ready(Ready { one, entry, call: chain.call, records: chain.records })
            }
            Err(stop) => {
                let mut finished = self.stopped(stop);
                finished.end.hooks = chain.records;
                Preflight::Refused(finished)
            }
        }
    }

    /// The hooks in configured order, then the questions that they raised: a person sees the
    /// arguments as the tool will get them, and nothing changes them afterwards.
    async fn pass(&self, chain: &mut Chain, one: OneCall<'_>, entry: &Entry) -> Result<(), Stop> {
        for link in &one.all.policy.before {
            if link.tools.takes(&one.call.name) {
                self.ask_hook(chain, link, one, entry).await?;
            }
        }
        for (hook, question) in std::mem::take(&mut chain.questions) {
            self.ask_person(chain, hook, &question, entry).await?;
        }
        Ok(())
    }

    async fn ask_hook(
        &self,
        chain: &mut Chain,
        link: &BeforeEntry,
        one: OneCall<'_>,
        entry: &Entry,
    ) -> Result<(), Stop> {
        let Some(assistant) = &one.all.answer else { return Ok(()) };
        let call = HookedCall { call: &chain.call, plugin: entry.tool.plugin(), assistant };
        let hooked = guarded(|| link.hook.before(call, self.abort)).await;
        let Hooked { answer, receipt } = hooked.unwrap_or_else(|panic| Err(panic).into());
        let answer = answer.and_then(|verdict| admissible(verdict, link, one, entry));
        // A failure is told even if the run was aborted meanwhile: it says more.
        let verdict = match answer {
            Ok(verdict) => verdict,
            Err(problem) => {
                chain.note(link, HookAction::Failed(problem.clone()), receipt);
                return self.hook_failed(chain, link, problem);
            }
        };
        if self.abort.is_cancelled() {
            chain.note_cost(link, receipt);
            return Err(Stop::Aborted);
        }
        match verdict {
            Verdict::Proceed => chain.note_cost(link, receipt),
            Verdict::Rewrite(to) => {
                let from = std::mem::replace(&mut chain.call.arguments, to.clone());
                chain.note(link, HookAction::Rewrote { from, to }, receipt);
            }
            Verdict::Block(refusal) => {
                chain.note(link, HookAction::Blocked(refusal.clone()), receipt);
                return Err(Stop::Blocked(refusal));
            }
            Verdict::Ask(question) => {
                chain.note_cost(link, receipt);
                chain.questions.push((link.hook.name().to_owned(), question));
            }
        }
        Ok(())
    }

    fn hook_failed(
        &self,
        chain: &mut Chain,
        link: &BeforeEntry,
        problem: String,
    ) -> Result<(), Stop> {
        match link.failure {
            BeforeFailure::Block => Err(Stop::Failed(problem)),
            _ if self.abort.is_cancelled() => Err(Stop::Aborted),
            BeforeFailure::Ask => {
                let hook = link.hook.name().to_owned();
                let question = refusal::question_of_failed_hook(&hook, &problem);
                chain.questions.push((hook, question));
                Ok(())
            }
            BeforeFailure::Proceed => Ok(()),
        }
    }

    async fn ask_person(
        &self,
        chain: &mut Chain,
        hook: String,
        question: &Question,
        entry: &Entry,
    ) -> Result<(), Stop> {
        let decision = match &self.agent.fixed.approver {
            None => Decision::Unanswered { why: refusal::NOBODY.into() },
            Some(approver) => {
                let plugin = entry.tool.plugin();
                let approval = Approval { hook: &hook, question, plugin, call: &chain.call };
                let answer = guarded(|| approver.approve(approval));
                match self.abort.run_until_cancelled(answer).await {
                    Some(Ok(decision)) => decision,
                    Some(Err(panic)) => Decision::Unanswered { why: refusal::not_asked(&panic) },
                    None => return Err(Stop::Aborted),
                }
            }
        };
        let action = HookAction::Asked(decision.clone());
        chain.records.push(HookRecord { hook, action, receipt: None });
        match decision {
            // An abort that came with the answer is the later word.
            _ if self.abort.is_cancelled() => Err(Stop::Aborted),
            Decision::Approved => Ok(()),
            no => Err(Stop::NotApproved(no)),
        }
    }

    /// The error result of a call that ended in the chain. Only a block carries a vote.
    fn stopped(&self, stop: Stop) -> Finished {
        match stop {
            Stop::Failed(problem) => Finished::refused(ended_by::HOOK, problem),
            Stop::Aborted => Finished::refused(ended_by::ABORTED, refusal::aborted()),
            Stop::NotApproved(decision) => {
                Finished::refused(ended_by::NOT_APPROVED, refusal::not_approved(&decision))
            }
            Stop::Blocked(Refusal { reason, terminate }) => {
                let text = if reason.is_empty() { refusal::blocked() } else { reason };
                let mut finished = Finished::refused(ended_by::BLOCKED, text);
                finished.end.result.terminate = terminate;
                finished
            }
        }
    }
}

fn checked(one: OneCall<'_>, entry: &Entry, prepared: Prepared) -> Result<Valid, ArgsError> {
    prepared.validated(&entry.schema, one.all.policy.coercion)
}

/// Whether a hook may answer this: an operator may keep it from rewriting, or have what it writes
/// validated.
fn admissible(
    verdict: Verdict,
    link: &BeforeEntry,
    one: OneCall<'_>,
    entry: &Entry,
) -> Result<Verdict, String> {
    let Verdict::Rewrite(arguments) = verdict else { return Ok(verdict) };
    match link.rewrites {
        Rewrites::Trusted => Ok(Verdict::Rewrite(arguments)),
        Rewrites::Forbidden => Err(refusal::rewrite_forbidden(link.hook.name())),
        Rewrites::Revalidated => match checked(one, entry, Prepared::from(&arguments)) {
            Ok(valid) => Ok(Verdict::Rewrite(valid.into_inner())),
            Err(error) => Err(refusal::rewrite_invalid(link.hook.name(), &error)),
        },
    }
}

impl Preflight<'_> {
    fn refused(code: &str, text: String) -> Self {
        Self::Refused(Finished::refused(code, text))
    }
}

impl Chain {
    fn note(&mut self, link: &BeforeEntry, action: HookAction, receipt: Option<SharedReceipt>) {
        self.records.push(HookRecord { hook: link.hook.name().to_owned(), action, receipt });
    }

    /// A hook that only looked is worth a record if it has a bill.
    fn note_cost(&mut self, link: &BeforeEntry, receipt: Option<SharedReceipt>) {
        if receipt.is_some() {
            self.note(link, HookAction::Kept, receipt);
        }
    }
}
