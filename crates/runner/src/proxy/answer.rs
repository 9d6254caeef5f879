//! Interprets the answers of an HTTP service.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde::Deserialize;
use tokenrail_domain::{AgentError, ErrorClass};
use tokenrail_ports::{ExitStatus, RunEnd};
use tokio::time::timeout;

use super::ProxyLimits;
use crate::error_status::class_of;
use crate::sse::no_stream;

/// Why the answer is not a stream of events; `None` if it is one.
pub(super) async fn refusal(response: &mut Response, limits: &ProxyLimits) -> Option<AgentError> {
    let status = response.status();
    if status.is_success() {
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_stream = media_type.is_some_and(|value| value.trim_start().starts_with("text/event-stream"));
        return (!is_stream).then(|| error(ErrorClass::Protocol, "upstream_protocol", no_stream(media_type)));
    }
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let body = body(response, limits).await;
    let text = if body.is_empty() {
        format!("the proxied service answered {status}")
    } else {
        format!("the proxied service answered {status}: {body}")
    };
    let mut refusal = error(class(status), "upstream_refused", text);
    refusal.retry_after_ms = retry_after.map(|seconds: u32| u64::from(seconds) * 1000);
    Some(refusal)
}

/// The end of a run by an `error` event.
pub(super) fn failed(data: &[u8]) -> RunEnd {
    #[derive(Deserialize, Default)]
    struct Failed {
        code: Option<i32>,
        error: Option<String>,
    }
    // It is an error, even if its data is malformed.
    let Failed { code, error: stderr } = serde_json::from_slice(data).unwrap_or_default();
    let stderr = stderr.unwrap_or_default();
    let text = match (code, stderr.trim()) {
        (_, text) if !text.is_empty() => text.to_owned(),
        (Some(code), _) => format!("the agent behind the proxied service ended with code {code}"),
        (None, _) => "the proxied service reported an error without details".to_owned(),
    };
    RunEnd {
        status: code.map_or(ExitStatus::None, ExitStatus::Code),
        error: Some(error(ErrorClass::Process, "upstream_error", text)),
        stderr,
        ..RunEnd::default()
    }
}

/// The error for a lost connection.
pub(super) fn dropped(how: &str) -> AgentError {
    error(
        ErrorClass::Network,
        "upstream_dropped",
        format!("lost the connection to the proxied service: {how}"),
    )
}

pub(super) fn error(class: ErrorClass, code: &str, text: String) -> AgentError {
    AgentError::new(class, Some(code), text)
}

fn class(status: StatusCode) -> ErrorClass {
    match status.as_u16() {
        502 | 503 | 529 => ErrorClass::Overloaded,
        _ => class_of(status, ErrorClass::Unknown),
    }
}

/// The beginning of the body, or the part of it that arrives in time.
async fn body(response: &mut Response, limits: &ProxyLimits) -> String {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk[..chunk.len().min(limits.error_bytes - body.len())]);
            if body.len() == limits.error_bytes {
                break;
            }
        }
    };
    // If the time runs out, the part that has arrived is used.
    let _ = timeout(Duration::from_millis(limits.connect_timeout_ms), read).await;
    String::from_utf8_lossy(&body).trim().to_owned()
}
