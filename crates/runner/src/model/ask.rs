//! The separate process: sends the request, and prints the answer.

use std::env;
use std::error::Error;
use std::io::{self, Read as _, Write};
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, redirect};
use tokenrail_domain::ErrorClass;
use tokenrail_ports::{AddedLine, FailureLine};
use tokio::runtime;
use tokio::time::timeout;

use super::body::{body, url};
use super::order::ModelOrder;
use super::report::{Printer, failure};
use super::retry_after::retry_after_ms;
use super::{ModelApi, ModelLimits};
use crate::SseDecoder;
use crate::causes::with_causes;
use crate::error_status::class_of;
use crate::sse::no_stream;

/// The version of Anthropic's API.
const ANTHROPIC_VERSION: (HeaderName, HeaderValue) =
    (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));

/// Sends the request on standard input to a model API once, and prints the answer as it arrives.
///
/// The body of the internal command `model <API>`. It handles no signals: any signal that ends the process closes the
/// connection. Exit code 0 means that everything was printed, be it an answer or an error.
///
/// # Panics
/// If the program has not installed a default crypto provider for `rustls`.
pub fn ask_model(api: ModelApi) -> ExitCode {
    match read_order().and_then(|order| ask(api, &order)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The error is read from standard error. If this write fails, only the exit code remains.
            let _ = writeln!(io::stderr(), "cannot call the model: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read_order() -> io::Result<ModelOrder> {
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

fn ask(api: ModelApi, order: &ModelOrder) -> io::Result<()> {
    let key = order.api_key_env.as_ref().and_then(|variable| env::var(variable).ok());
    let mut printer = Printer::new(io::stdout().lock(), key.as_deref());
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let answer = match request(api, order, key.as_deref()).await {
            Ok(response) => copy(response, &order.limits, &mut printer).await?,
            Err(failure) => Err(failure),
        };
        printer.added(&match answer {
            Ok(()) => AddedLine::End {},
            Err(failure) => AddedLine::Error(failure),
        })
    })
}

/// Sends the request, and returns when the answer has begun.
async fn request(api: ModelApi, order: &ModelOrder, key: Option<&str>) -> Result<Response, FailureLine> {
    let limits = &order.limits;
    let unusable = |error: &dyn Error| {
        let text = format!("cannot create the request: {}", with_causes(error));
        failure(ErrorClass::InvalidRequest, "upstream_unreachable", text)
    };
    // It follows no redirect and uses no proxy from the environment: prompt and key are sent only to the configured
    // address.
    let client = Client::builder()
        .no_proxy()
        .redirect(redirect::Policy::none())
        .connect_timeout(Duration::from_millis(limits.connect_timeout_ms))
        .build()
        .map_err(|error| unusable(&error))?;
    let headers = headers(api, key).map_err(|error| unusable(&error))?;
    let body = body(api, order).to_string();
    let request = client.post(url(api, &order.base_url)).headers(headers).body(body);
    match timeout(Duration::from_millis(limits.idle_timeout_ms), request.send()).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => {
            let text = format!(
                "cannot reach the model API {}: {}",
                order.base_url,
                with_causes(&error.without_url())
            );
            Err(failure(ErrorClass::Network, "upstream_unreachable", text))
        }
        Err(_) => Err(idle(limits)),
    }
}

fn headers(api: ModelApi, key: Option<&str>) -> Result<HeaderMap, reqwest::header::InvalidHeaderValue> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if api == ModelApi::Anthropic {
        headers.extend([ANTHROPIC_VERSION]);
    }
    if let Some(key) = key {
        let (name, value) = match api {
            ModelApi::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
            ModelApi::OpenAiChat | ModelApi::OpenAiResponses => (AUTHORIZATION, format!("Bearer {key}")),
        };
        let mut value = HeaderValue::try_from(value)?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Prints the answer's events until it ends. The outer error means that they cannot be printed.
async fn copy<W: Write>(
    mut response: Response,
    limits: &ModelLimits,
    printer: &mut Printer<W>,
) -> io::Result<Result<(), FailureLine>> {
    if let Some(failure) = refusal(&mut response, limits, printer).await {
        return Ok(Err(failure));
    }
    let mut decoder = SseDecoder::new(limits.event_bytes);
    let mut events = Vec::new();
    loop {
        let chunk = match chunk(&mut response, limits).await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return Ok(Ok(())),
            Err(failure) => return Ok(Err(failure)),
        };
        let read = decoder.feed(&chunk, &mut events);
        for event in events.drain(..) {
            printer.event(&event.data)?;
        }
        if let Err(overflow) = read {
            let failure =
                failure(ErrorClass::Protocol, "upstream_protocol", format!("{overflow} (limits.line_bytes)"));
            return Ok(Err(failure));
        }
    }
}

/// The next part of the answer; `None` if it has ended.
async fn chunk(response: &mut Response, limits: &ModelLimits) -> Result<Option<Bytes>, FailureLine> {
    match timeout(Duration::from_millis(limits.idle_timeout_ms), response.chunk()).await {
        Ok(Ok(chunk)) => Ok(chunk),
        Ok(Err(error)) => {
            let text = format!("lost the connection to the model API: {}", with_causes(&error.without_url()));
            Err(failure(ErrorClass::Network, "upstream_dropped", text))
        }
        Err(_) => Err(idle(limits)),
    }
}

fn idle(limits: &ModelLimits) -> FailureLine {
    let seconds = limits.idle_timeout_ms / 1000;
    let text = format!(
        "the model API sent nothing for {seconds} seconds; if it may be silent for longer, raise limits.idle_timeout_s"
    );
    failure(ErrorClass::Timeout, "upstream_idle", text)
}

/// Why the answer is not a stream of events; `None` if it is one.
async fn refusal<W: Write>(
    response: &mut Response,
    limits: &ModelLimits,
    printer: &Printer<W>,
) -> Option<FailureLine> {
    let status = response.status();
    let header = |name: &HeaderName| response.headers().get(name)?.to_str().ok();
    let media_type = header(&CONTENT_TYPE).map(str::to_owned);
    let is_stream =
        media_type.as_deref().is_some_and(|value| value.trim_start().starts_with("text/event-stream"));
    if status.is_success() && is_stream {
        return None;
    }
    let retry_after_ms = retry_after_ms(response.headers());
    let body = beginning(response, limits, printer.bytes_to_read(limits.error_bytes)).await;
    let body = Some(printer.quoted(&body, limits.error_bytes).into_owned()).filter(|body| !body.is_empty());
    if status.is_success() {
        let text = no_stream(media_type.as_deref());
        return Some(FailureLine { body, ..failure(ErrorClass::Protocol, "upstream_protocol", text) });
    }
    let hint = if status.is_redirection() { "; redirects are not followed" } else { "" };
    let text = format!("the model API answered {status}{hint}");
    // Any failure of the API counts as overload, because the remedy is the same: try again later.
    let failure = failure(class_of(status, ErrorClass::Overloaded), "upstream_refused", text);
    Some(FailureLine { status: Some(status.as_u16()), retry_after_ms, body, ..failure })
}

/// The beginning of the body, or the part of it that arrives in time.
async fn beginning(response: &mut Response, limits: &ModelLimits, bytes_max: usize) -> Vec<u8> {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk[..chunk.len().min(bytes_max - body.len())]);
            if body.len() == bytes_max {
                break;
            }
        }
    };
    // If the time runs out, the part that has arrived is used.
    let _ = timeout(Duration::from_millis(limits.connect_timeout_ms), read).await;
    body
}
