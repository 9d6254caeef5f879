//! Every problem that a client can receive: its code, its status and its JSON (RFC 9457).

mod codes;

use std::fmt;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{self, HeaderValue};
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError};
use serde::Serialize;
use tokenrail_application::{Refusal, ReplyText, StoreError};
use tokenrail_domain::ReplyFault;
use utoipa::ToSchema;

pub(crate) use codes::Code;

/// How long a client should wait if the server is busy, in seconds.
const BUSY_RETRY_S: u64 = 1;

/// Why a request was refused.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) code: Code,
    /// A sentence for a developer. It contains no internals, and nothing of the request except plain names.
    pub(crate) detail: String,
    pub(crate) errors: Vec<FieldProblem>,
    /// The sequence number of the newest event, if the cursor is ahead of it.
    pub(crate) head: Option<u64>,
    pub(crate) retry_after_s: Option<u64>,
    /// The allowed methods, if the method of the request is not allowed.
    pub(crate) allow: Option<&'static str>,
}

/// What is wrong with one part of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(ts_rs::TS), ts(optional_fields))]
pub(crate) struct FieldProblem {
    /// A JSON pointer into the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) pointer: Option<String>,
    /// The name of a query parameter or header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) parameter: Option<&'static str>,
    pub(crate) detail: String,
}

/// A problem as `application/problem+json`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Problem", optional_fields))]
pub(crate) struct ProblemDto<'a> {
    /// `/problems/<code>`.
    #[serde(rename = "type")]
    kind: String,
    title: &'static str,
    status: u16,
    detail: &'a str,
    #[cfg_attr(test, ts(type = "ProblemCode"))]
    code: &'static str,
    request_id: &'a str,
    /// Whether the same request may succeed later.
    retryable: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<FieldProblem>, required = false)]
    #[cfg_attr(test, ts(optional, as = "Option<&[FieldProblem]>"))]
    errors: &'a [FieldProblem],
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    head: Option<u64>,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<String>) -> Self {
        let retry_after_s = matches!(code.status().as_u16(), 429 | 503).then_some(BUSY_RETRY_S);
        Self { code, detail: detail.into(), errors: Vec::new(), head: None, retry_after_s, allow: None }
    }

    /// An invalid field of the body. `pointer` has no leading slash.
    pub(crate) fn field(pointer: &str, detail: impl Into<String>) -> Self {
        Self::fields(vec![FieldProblem::body(pointer, detail)])
    }

    pub(crate) fn fields(errors: Vec<FieldProblem>) -> Self {
        Self { errors, ..Self::new(Code::ValidationFailed, "one or more fields are invalid; see errors") }
    }

    /// An invalid query parameter or header.
    pub(crate) fn parameter(parameter: &'static str, detail: impl Into<String>) -> Self {
        let error = FieldProblem { pointer: None, parameter: Some(parameter), detail: detail.into() };
        Self::fields(vec![error])
    }

    pub(crate) fn not_found() -> Self {
        Self::new(Code::NotFound, "no such path")
    }

    /// The client must wait: `wait` is the time until it may try again.
    pub(crate) fn rate_limited(detail: &str, wait: Duration) -> Self {
        Self { retry_after_s: Some(wait.as_secs() + 1), ..Self::new(Code::RateLimited, detail) }
    }

    pub(crate) fn method_not_allowed(allow: &'static str) -> Self {
        let problem = Self::new(
            Code::MethodNotAllowed,
            format!("the path does not support this method; it supports: {allow}"),
        );
        Self { allow: Some(allow), ..problem }
    }

    pub(crate) fn unauthenticated() -> Self {
        // The text is the same for a missing, wrong or used token or ticket, so that it does not reveal which it is.
        Self::new(
            Code::Unauthenticated,
            "send the header \"Authorization: Bearer <token>\" with a valid token; the command \"tokenrail token\" \
             prints it",
        )
    }

    /// What is wrong, in one line.
    pub(crate) fn sentence(&self) -> String {
        self.errors.first().map_or_else(|| self.detail.clone(), FieldProblem::sentence)
    }

    /// The body of the response of a server below this base path, which is empty for the root.
    pub(crate) fn to_json(&self, request_id: &str, base_path: &str) -> Vec<u8> {
        let Self { code, detail, errors, head, retry_after_s: _, allow: _ } = self;
        let dto = ProblemDto {
            kind: format!("{base_path}/problems/{}", code.as_str()),
            title: code.title(),
            status: code.status().as_u16(),
            detail,
            code: code.as_str(),
            request_id,
            retryable: code.retryable(),
            errors,
            head: *head,
        };
        serde_json::to_vec(&dto).unwrap_or_default()
    }
}

impl FieldProblem {
    pub(crate) fn body(name: &str, detail: impl Into<String>) -> Self {
        Self { pointer: Some(format!("/{name}")), parameter: None, detail: detail.into() }
    }

    /// What is wrong, and where, in one line. A problem with the whole body has no place.
    pub(crate) fn sentence(&self) -> String {
        match self.pointer.as_deref().or(self.parameter) {
            None | Some("") => self.detail.clone(),
            Some(place) => format!("{place}: {}", self.detail),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.detail)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.code.status()
    }

    /// The response without its body. The guard writes the body, because it knows the request id.
    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponseBuilder::new(self.code.status());
        response.insert_header((header::CONTENT_TYPE, "application/problem+json"));
        if let Some(seconds) = self.retry_after_s {
            response.insert_header((header::RETRY_AFTER, seconds));
        }
        if let Some(allow) = self.allow {
            response.insert_header((header::ALLOW, allow));
        }
        if self.code == Code::Unauthenticated {
            let challenge = HeaderValue::from_static("Bearer realm=\"tokenrail\"");
            response.insert_header((header::WWW_AUTHENTICATE, challenge));
        }
        if self.code == Code::UpgradeRequired {
            response.insert_header((header::UPGRADE, "websocket"));
            response.insert_header((header::SEC_WEBSOCKET_VERSION, "13"));
        }
        response.finish()
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            Refusal::NotFound(_) => Self::new(Code::NotFound, "no such agent"),
            Refusal::UnknownType { known, .. } => {
                let errors = vec![FieldProblem::body("type", format!("unknown; must be one of: {known}"))];
                Self { errors, ..Self::new(Code::RunnerUnknown, "unknown agent type") }
            }
            Refusal::TypeMissing | Refusal::OtherType { .. } => Self::field("type", detail),
            Refusal::CwdNotAllowed(_) | Refusal::OutsideParent => {
                let errors = vec![FieldProblem::body("cwd", detail.clone())];
                Self { errors, ..Self::new(Code::CwdNotAllowed, detail) }
            }
            Refusal::CursorAhead { head } => {
                Self { head: Some(head.0), ..Self::new(Code::CursorAhead, detail) }
            }
            Refusal::Deleted | Refusal::ParentDeleted => Self::new(Code::AgentDeleted, detail),
            Refusal::ReadOnly => Self::new(Code::AgentReadOnly, detail),
            Refusal::Active => Self::new(Code::AgentActive, detail),
            Refusal::QueueFull => Self::new(Code::QueueFull, detail),
            Refusal::TooManyLaunches { wait } => Self::rate_limited(&detail, wait),
            Refusal::TooManyQueuedLaunches
            | Refusal::TooManyChildren { .. }
            | Refusal::TooManyImports
            | Refusal::TooManyChanges
            | Refusal::AnswerNotDelivered => Self::new(Code::CapacityExhausted, detail),
            Refusal::TooDeep { .. } => Self::new(Code::ValidationFailed, detail),
            Refusal::ChangesUnknown(_) => Self::new(Code::ChangesUnavailable, detail),
            Refusal::KeyReused => Self::new(Code::IdempotencyMismatch, detail),
            Refusal::ImagesNotAccepted { .. } => {
                let errors = vec![FieldProblem::body("images", detail.clone())];
                Self { errors, ..Self::new(Code::ImagesNotAccepted, detail) }
            }
            Refusal::RequestUnknown(_) | Refusal::TurnUnknown(_) | Refusal::ImageUnknown => {
                Self::new(Code::NotFound, detail)
            }
            Refusal::RequestSettled(_) => Self::new(Code::AlreadyResolved, detail),
            Refusal::OptionUnknown { .. } => Self::field("optionId", detail),
            Refusal::TurnTaken(_) => Self::field("turn", detail),
            Refusal::TurnStarted(_) => Self::new(Code::TurnStarted, detail),
            Refusal::ReplyNotAccepted(fault) => Self::field(field_of(fault), detail),
            Refusal::ReplyTooLong { part: ReplyText::Text, .. } => Self::field("text", detail),
            Refusal::ReplyTooLong { part: ReplyText::Note, .. } => Self::field("note", detail),
            Refusal::NodeUnavailable { .. } | Refusal::TypeNotHere { .. } | Refusal::NodeNotAlive { .. } => {
                Self::new(Code::NodeUnavailable, detail)
            }
            Refusal::NoNodeNamed(_) | Refusal::SeveralNodesNamed { .. } => {
                Self::new(Code::NodeUnknown, detail)
            }
            Refusal::FolderElsewhere => Self::field("node", detail),
            Refusal::NodeUnknown(_) => Self::new(Code::NotFound, detail),
            Refusal::NodeAlive(_) => Self::new(Code::NodeAlive, detail),
            Refusal::DataDiskFull => Self::new(Code::StorageFull, detail),
            Refusal::OutOfTouch => Self::new(Code::StoreBusy, detail),
            Refusal::ShuttingDown => Self::new(Code::ShuttingDown, detail),
            Refusal::Store(error) => error.into(),
        }
    }
}

/// The field of an answer to a permission request that is at fault.
fn field_of(fault: ReplyFault) -> &'static str {
    match fault {
        ReplyFault::UnknownOption => "optionId",
        ReplyFault::NotSeveral | ReplyFault::Unmixable => "optionIds",
        ReplyFault::NoText => "text",
        ReplyFault::NoNote | ReplyFault::NoteWithoutRejection => "note",
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let (code, detail) = match &error {
            StoreError::UnknownAgent(_) => return Self::new(Code::NotFound, "no such agent"),
            StoreError::Busy => (Code::StoreBusy, "the database is busy; try again later"),
            StoreError::Unreachable(_) => {
                (Code::StoreBusy, "the database server cannot be reached or does not answer; try again later")
            }
            StoreError::WrongServer(wrong) => {
                // It names files of this server, and anybody may ask `/readyz`.
                tracing::error!(code = Code::StoreBusy.as_str(), "{wrong}");
                let detail = "the PostgreSQL server is a former primary, or is not the server that was used before; \
                              the server log and `tokenrail doctor` say what to do";
                (Code::StoreBusy, detail)
            }
            StoreError::Full => (
                Code::StorageFull,
                "the disk that holds the database is full; free up space on it, then try again",
            ),
            StoreError::OutcomeUnknown(_) => {
                let detail = "it is unknown whether the request was saved; if it had an Idempotency-Key, send it \
                              again with the same key, otherwise check first whether it took effect";
                (Code::OutcomeUnknown, detail)
            }
            StoreError::Fenced => {
                let detail = "the other nodes declared this node lost, or another server runs on a copy of its data \
                              folder; try again later, or send the request to another node; if it fails again, read \
                              the log of this server";
                (Code::StoreBusy, detail)
            }
            StoreError::Conflict { .. }
            | StoreError::Outdated { .. }
            | StoreError::Corrupt(_)
            | StoreError::Unavailable(_) => {
                (Code::StoreFailed, "the database failed; the server log has the cause")
            }
        };
        tracing::error!(
            error = &error as &dyn std::error::Error,
            code = code.as_str(),
            "the database failed"
        );
        Self::new(code, detail)
    }
}
