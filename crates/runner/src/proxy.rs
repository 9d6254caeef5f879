//! An agent behind an HTTP service.
//!
//! The runner sends `POST <url>/agent/stream`. The service answers with server-sent events: `message` with one line of
//! the agent's output, and at the end `complete` or `error`.

mod answer;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::{Client, redirect};
use serde::Serialize;
use tokenrail_domain::{AgentError, ErrorClass, SessionId};
use tokenrail_ports::{
    Adoption, IAgentRun, IAgentRunner, Line, OutputLine, Probe, RunEnd, RunOutput, RunnerError, TurnOrder,
};
use tokio::time::{Instant, timeout, timeout_at};

use crate::causes::with_causes;
use crate::{SseDecoder, SseEvent};

/// One agent type behind an HTTP service.
#[derive(Debug, Clone)]
pub struct ProxyConfig {
    /// The address of the service, without `/agent/stream`.
    pub url: String,
    pub limits: ProxyLimits,
}

/// The limits of an agent behind an HTTP service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyLimits {
    /// How long connecting may take. Also how long reading the body of an error response may take.
    pub connect_timeout_ms: u64,
    /// How long the service may take until its answer begins.
    pub response_timeout_ms: u64,
    /// How long the service may send nothing during its answer. A keep-alive counts as data.
    pub idle_timeout_ms: u64,
    /// The maximum length of an event. A longer event ends the run.
    pub event_bytes: usize,
    /// How many bytes of an error response are read.
    pub error_bytes: usize,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connect_timeout_ms: 10_000,
            response_timeout_ms: 120_000,
            idle_timeout_ms: 600_000,
            event_bytes: 16 << 20,
            error_bytes: 4 << 10,
        }
    }
}

/// Runs an agent behind an HTTP service.
///
/// Its output exists only in the connection, so a run that was interrupted cannot be resumed.
pub struct ProxyRunner {
    config: ProxyConfig,
    client: Client,
}

#[derive(Serialize)]
struct Request<'a> {
    prompt: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
}

impl ProxyRunner {
    /// Creates the HTTP client. It follows no redirects and uses no proxy from the environment: prompts are sent only
    /// to the configured address.
    ///
    /// # Panics
    /// If the program has not installed a default crypto provider for `rustls`.
    pub fn new(config: ProxyConfig) -> Result<Self, RunnerError> {
        let client = Client::builder()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .connect_timeout(Duration::from_millis(config.limits.connect_timeout_ms))
            .build()
            .map_err(unreachable)?;
        Ok(Self { config, client })
    }
}

#[async_trait]
impl IAgentRunner for ProxyRunner {
    async fn start(&self, order: &TurnOrder) -> Result<Box<dyn IAgentRun>, RunnerError> {
        let ProxyConfig { url, limits } = &self.config;
        let url = format!("{}/agent/stream", url.trim_end_matches('/'));
        let request =
            Request { prompt: &order.prompt, session_id: order.session.as_ref().map(SessionId::as_str) };
        let request = self.client.post(url).header("accept", "text/event-stream").json(&request);
        let patience = Duration::from_millis(limits.response_timeout_ms);
        let mut response =
            timeout(patience, request.send()).await.map_err(unreachable)?.map_err(unreachable)?;
        let refusal = answer::refusal(&mut response, limits).await;
        let idle = Duration::from_millis(limits.idle_timeout_ms);
        Ok(Box::new(ProxyRun {
            end: refusal.map(|error| RunEnd { error: Some(error), ..RunEnd::default() }),
            response: Some(response),
            decoder: SseDecoder::new(limits.event_bytes),
            offset: 0,
            idle,
            idle_at: Instant::now() + idle,
        }))
    }

    async fn adopt(&self, _order: &TurnOrder, _committed: u64) -> Result<Adoption, RunnerError> {
        Ok(Adoption::Gone)
    }

    async fn probe(&self) -> Probe {
        Probe { program: Some(self.config.url.clone()), ..Probe::default() }
    }

    /// The conversation is at the other end.
    fn outlives_server(&self) -> bool {
        false
    }

    fn needs_home(&self) -> bool {
        false
    }
}

fn unreachable(error: impl std::error::Error + Send + Sync + 'static) -> RunnerError {
    RunnerError::Unreachable(Box::new(error))
}

struct ProxyRun {
    /// `None` after it was dropped, and the connection with it.
    response: Option<reqwest::Response>,
    decoder: SseDecoder,
    /// How many bytes of output have arrived.
    offset: u64,
    idle: Duration,
    /// When the service will have been silent for too long.
    idle_at: Instant,
    end: Option<RunEnd>,
}

impl ProxyRun {
    /// The next part of the answer, or why there is none.
    async fn chunk(&mut self) -> Result<Bytes, AgentError> {
        let Some(response) = &mut self.response else {
            return Err(answer::dropped("the connection was closed"));
        };
        match timeout_at(self.idle_at, response.chunk()).await {
            Ok(Ok(Some(chunk))) => {
                self.idle_at = Instant::now() + self.idle;
                Ok(chunk)
            }
            Ok(Ok(None)) => Err(answer::dropped("the response ended too early")),
            Ok(Err(error)) => Err(answer::dropped(&with_causes(&error))),
            Err(_) => {
                let seconds = self.idle.as_secs();
                let text = format!(
                    "the proxied service sent nothing for {seconds} seconds; if it may be silent for longer, raise \
                     limits.idle_timeout_s"
                );
                Err(answer::error(ErrorClass::Timeout, "upstream_idle", text))
            }
        }
    }

    /// Decodes a part of the answer. Returns the lines in it.
    fn read(&mut self, chunk: &[u8]) -> Vec<OutputLine> {
        let mut events = Vec::new();
        let read = self.decoder.feed(chunk, &mut events);
        let mut lines = Vec::new();
        for event in events {
            // Events after the end are ignored.
            if self.end.is_none() {
                self.event(event, &mut lines);
            }
        }
        if let (Err(error), None) = (read, &self.end) {
            let error = answer::error(ErrorClass::Protocol, "upstream_protocol", error.to_string());
            self.end = Some(RunEnd { error: Some(error), ..RunEnd::default() });
        }
        lines
    }

    fn event(&mut self, event: SseEvent, lines: &mut Vec<OutputLine>) {
        let SseEvent { name, data, id: _ } = event;
        match name.as_str() {
            "" | "message" => {
                self.offset += data.len() as u64 + 1;
                lines.push(OutputLine { line: Line::Whole(data.into()), end_offset: self.offset });
            }
            "complete" => self.end = Some(RunEnd::default()),
            "error" => self.end = Some(answer::failed(&data)),
            // Services may send events that this version does not know.
            _ => tracing::debug!(name, "ignoring an unknown event from the proxied service"),
        }
    }
}

#[async_trait]
impl IAgentRun for ProxyRun {
    async fn next(&mut self) -> Result<RunOutput, RunnerError> {
        loop {
            if let Some(end) = &self.end {
                self.response = None;
                return Ok(RunOutput::Ended(end.clone()));
            }
            match self.chunk().await {
                Ok(chunk) => {
                    let lines = self.read(&chunk);
                    if !lines.is_empty() {
                        return Ok(RunOutput::Lines(lines));
                    }
                }
                Err(error) => self.end = Some(RunEnd { error: Some(error), ..RunEnd::default() }),
            }
        }
    }

    async fn cancel(&mut self) -> Result<(), RunnerError> {
        // The service ends its agent when the connection is closed.
        self.response = None;
        self.end.get_or_insert_default();
        Ok(())
    }

    async fn leave(&mut self) {}
}
