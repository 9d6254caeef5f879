//! Parameters that several of Letta's routes have, for the OpenAPI document.
#![expect(dead_code, reason = "they describe what the handlers read from the request")]

use utoipa::IntoParams;

/// The part of a list.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    #[param(minimum = 1)]
    limit: Option<u64>,
    after: Option<String>,
    before: Option<String>,
    #[param(pattern = "^(asc|desc)$")]
    order: Option<String>,
}

/// How the response to a message is wanted.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct SayQuery {
    #[param(pattern = "^(letta|kelpie|both)$")]
    format: Option<String>,
    /// `true` or `1`
    #[param(rename = "cancelOnDisconnect")]
    cancel_on_disconnect: Option<String>,
}

/// What says that a message was already sent.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct SayHeaders {
    #[param(rename = "Idempotency-Key", pattern = "^[!-~]{1,255}$")]
    idempotency_key: Option<String>,
    /// Greater than 0 if the message was already sent
    #[param(rename = "X-Stainless-Retry-Count")]
    retry_count: Option<String>,
}
