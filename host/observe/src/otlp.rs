//! The way to a collector of OpenTelemetry: spans wait in a queue that is bounded and are sent by a
//! thread of their own. A collector that is slow or gone costs spans, never a run.

use crate::contents::Contents;
use crate::subject::Subject;
use crate::traces::Traces;
use cofferdam_agent::event::Observer;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{Protocol, SpanExporter as OtlpExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchSpanProcessor, SdkTracerProvider, SpanData, SpanExporter};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the last spans may take at the end.
const FLUSH_MAX: Duration = Duration::from_secs(3);

/// Where the collector is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Collector {
    /// At this base address, such as `http://127.0.0.1:4318`; traces go to `/v1/traces` below it.
    At(String),
    /// Where `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT` say, else at
    /// port 4318 of this machine.
    OfEnvironment,
}

/// A collector that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OtlpError {
    /// The address is none.
    #[error("the collector's address {0:?} does not begin with http:// or https://")]
    Address(String),
    /// The environment asks for another protocol.
    #[error(
        "{variable} asks for the protocol `{protocol}`, and only `http/protobuf` is spoken: unset it \
         and give the collector's HTTP port, which is usually 4318"
    )]
    Protocol {
        /// The variable.
        variable: &'static str,
        /// What it says.
        protocol: String,
    },
    /// The exporter cannot be made of what it was told.
    #[error("export of traces: {0}")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
}

/// Sends spans to a collector. Headers, time-outs, queue, sampler and resource can be set by the
/// usual variables (`OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_BSP_MAX_QUEUE_SIZE`, `OTEL_TRACES_SAMPLER`,
/// `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` and their kin).
#[derive(Debug)]
pub struct Otlp {
    provider: SdkTracerProvider,
    sent: Arc<Sent>,
}

/// What became of spans.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    ended: AtomicU64,
    taken: AtomicU64,
    /// Why the last batch was not taken.
    problem: Mutex<Option<String>>,
}

impl Otlp {
    /// Makes the exporter; nothing is sent yet, and a collector that is not there is no error.
    pub fn new(collector: &Collector) -> Result<Self, OtlpError> {
        check_protocol()?;
        // The HTTP client is built without a choice of cryptography. One that was made before stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let exporter = OtlpExporter::builder().with_http().with_protocol(Protocol::HttpBinary);
        let exporter = match collector {
            Collector::At(base) => exporter.with_endpoint(traces_url(base)?),
            Collector::OfEnvironment => exporter,
        };
        let sent = Arc::new(Sent::default());
        let exporter = Counting { exporter: exporter.build()?, sent: sent.clone() };
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter).build())
            .with_resource(resource())
            .build();
        Ok(Self { provider, sent })
    }

    /// Makes spans of what an agent does; see [`cofferdam_agent::Agent::subscribe`].
    pub fn observer(&self, subject: Subject, contents: Contents) -> Arc<dyn Observer> {
        let scope = InstrumentationScope::builder("cofferdam")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        let tracer = self.provider.tracer_with_scope(scope);
        Arc::new(Traces::new(tracer, subject, contents, self.sent.clone()))
    }

    /// Sends what waits, for three seconds at most, and says what was lost, if anything was. Blocks
    /// the thread.
    pub fn finish(&self) -> Option<String> {
        // What went wrong is counted, whatever the provider makes of it.
        let _ = self.provider.shutdown_with_timeout(FLUSH_MAX);
        let ended = self.sent.ended.load(Ordering::Relaxed);
        let lost = ended.saturating_sub(self.sent.taken.load(Ordering::Relaxed));
        let problem = self.sent.problem.lock().unwrap_or_else(PoisonError::into_inner).take();
        let why = problem.unwrap_or_else(|| "the collector did not take them in time".into());
        (lost > 0).then(|| format!("traces: {lost} of {ended} spans were not delivered: {why}"))
    }
}

impl Sent {
    /// Counts a span that ended.
    pub(crate) fn ended(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts what the collector took.
#[derive(Debug)]
struct Counting {
    exporter: OtlpExporter,
    sent: Arc<Sent>,
}

impl SpanExporter for Counting {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let exported = self.exporter.export(batch).await;
        match &exported {
            Ok(()) => {
                self.sent.taken.fetch_add(spans, Ordering::Relaxed);
            }
            Err(problem) => {
                let mut last = self.sent.problem.lock().unwrap_or_else(PoisonError::into_inner);
                *last = Some(problem.to_string());
            }
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

fn traces_url(base: &str) -> Result<String, OtlpError> {
    if !["http://", "https://"].iter().any(|scheme| base.starts_with(scheme)) {
        return Err(OtlpError::Address(base.to_owned()));
    }
    Ok(format!("{}/v1/traces", base.trim_end_matches('/')))
}

/// What an exporter of this program cannot do is a mistake to be told, not to be passed over.
fn check_protocol() -> Result<(), OtlpError> {
    for variable in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
        match std::env::var(variable) {
            Ok(protocol) if !matches!(protocol.as_str(), "" | "http/protobuf") => {
                return Err(OtlpError::Protocol { variable, protocol });
            }
            // The first one that is set counts.
            Ok(protocol) if !protocol.is_empty() => return Ok(()),
            _ => {}
        }
    }
    Ok(())
}

fn resource() -> Resource {
    let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    let named = Resource::builder().build();
    let name = named.get(&"service.name".into()).map(|name| name.to_string());
    let resource = Resource::builder().with_attribute(version);
    match name {
        // Where nobody gave a name, the SDK makes one of the program's file.
        Some(name) if !name.starts_with("unknown_service") => resource.build(),
        _ => resource.with_service_name("cofferdam").build(),
    }
}
