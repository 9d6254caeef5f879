//! Errors of JSON-RPC.

use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::caller::Caller;
use super::rpc::{JSONRPC, RequestId};
use super::versions;
use crate::error::Code;

const UNKNOWN_METHOD: i32 = -32601;
/// The request is no JSON-RPC request.
const INVALID_REQUEST: i32 = -32600;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL: i32 = -32603;
const PARSE_ERROR: i32 = -32700;
/// Any other error. The newest version reserves this number.
const SERVER_ERROR: i32 = -32000;
/// A resource does not exist. The newest version has no number of its own for this.
const NO_RESOURCE: i32 = -32002;
/// The newest version's own numbers.
const HEADER_MISMATCH: i32 = -32020;
const CAPABILITY_MISSING: i32 = -32021;
const UNSUPPORTED_VERSION: i32 = -32022;

/// The response to a request that was refused. Without an id, it is about a message that could not be read.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = McpError)]
pub(crate) struct Failed<'a> {
    jsonrpc: &'static str,
    #[schema(value_type = serde_json::Value)]
    id: Option<&'a RequestId>,
    error: ErrorDto,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = McpErrorBody)]
struct ErrorDto {
    code: i32,
    message: String,
    data: ErrorData,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = McpErrorData)]
struct ErrorData {
    /// The code of the problem.
    code: &'static str,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// The versions of the protocol that the server speaks, if it does not speak that of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Vec<String>, required = false)]
    supported: Option<&'static [&'static str]>,
    /// The version of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    requested: Option<String>,
    /// The resource that does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    uri: Option<String>,
    /// What the client would have to offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = serde_json::Value, required = false)]
    required_capabilities: Option<Value>,
}

impl ErrorData {
    fn new(code: Code) -> Self {
        let (code, retryable) = (code.as_str(), code.retryable());
        Self { code, retryable, supported: None, requested: None, uri: None, required_capabilities: None }
    }
}

impl<'a> Failed<'a> {
    fn of(id: Option<&'a RequestId>, number: i32, code: Code, message: String) -> Self {
        let data = ErrorData::new(code);
        Self { jsonrpc: JSONRPC, id, error: ErrorDto { code: number, message, data } }
    }

    /// A request that did not reach a method.
    pub(crate) fn unread(id: Option<&'a RequestId>, code: Code, message: String) -> Self {
        let number = match code {
            Code::MalformedJson => PARSE_ERROR,
            Code::ValidationFailed => INVALID_REQUEST,
            _ => SERVER_ERROR,
        };
        Self::of(id, number, code, message)
    }

    pub(crate) fn refused(caller: &'a Caller, code: Code, message: String) -> Self {
        let number = match code {
            Code::ValidationFailed => INVALID_PARAMS,
            Code::NotFound if caller.is_newest() => INVALID_PARAMS,
            Code::NotFound => NO_RESOURCE,
            _ if caller.is_newest() => INTERNAL,
            _ => SERVER_ERROR,
        };
        Self::of(Some(&caller.id), number, code, message)
    }

    /// A resource that does not exist. Only the newest version says which.
    pub(crate) fn no_resource(caller: &'a Caller, uri: String, message: String) -> Self {
        let mut failed = Self::refused(caller, Code::NotFound, message);
        failed.error.data.uri = Some(uri).filter(|_| caller.is_newest());
        failed
    }

    pub(crate) fn no_method(caller: &'a Caller) -> Self {
        let message = "the server does not have this method".to_owned();
        Self::of(Some(&caller.id), UNKNOWN_METHOD, Code::NotFound, message)
    }

    /// A request whose headers do not fit to it.
    pub(crate) fn header_mismatch(id: &'a RequestId, header: &str) -> Self {
        let message = format!("the header {header} must be present and must match the body of the request");
        Self::of(Some(id), HEADER_MISMATCH, Code::ValidationFailed, message)
    }

    /// A request of a version that the server does not speak.
    pub(crate) fn unsupported(id: &'a RequestId, version: String) -> Self {
        let message =
            format!("the server does not support this version; it supports: {}", versions::ALL.join(", "));
        let mut failed = Self::of(Some(id), UNSUPPORTED_VERSION, Code::ValidationFailed, message);
        failed.error.data.supported = Some(&versions::ALL);
        failed.error.data.requested = Some(version);
        failed
    }

    /// A request that does not say about itself what it must.
    pub(crate) fn unclear(id: &'a RequestId, message: String) -> Self {
        Self::of(Some(id), INVALID_PARAMS, Code::ValidationFailed, message)
    }

    /// A request of a client that does not offer what is needed.
    pub(crate) fn capability_missing(caller: &'a Caller, capability: &str) -> Self {
        let message = format!("the client must offer the capability {capability}");
        let mut failed = Self::of(Some(&caller.id), CAPABILITY_MISSING, Code::ValidationFailed, message);
        failed.error.data.required_capabilities = Some(json!({ capability: {} }));
        failed
    }
}
