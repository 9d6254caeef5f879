//! The JSON names of Socket.IO: Engine.IO's handshake and errors, and what the server sends beside events.

use serde::Serialize;

use crate::json::IdText;
use crate::vocabularies::native::dto::frames::ErrorFrame;

/// The first packet of a connection.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenDto<'a> {
    pub(crate) sid: &'a str,
    pub(crate) upgrades: &'a [&'static str],
    /// In milliseconds, as all times here.
    pub(crate) ping_interval: u64,
    pub(crate) ping_timeout: u64,
    /// In bytes.
    pub(crate) max_payload: usize,
}

/// Why a request was refused
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct EngineProblem {
    /// 0: transport unknown; 1: session ID unknown; 2: bad handshake method; 3: bad request; 4: forbidden;
    /// 5: unsupported protocol version
    pub(crate) code: u8,
    pub(crate) message: String,
}

/// The client has connected to the namespace.
#[derive(Debug, Serialize)]
pub(crate) struct ConnectedDto<'a> {
    pub(crate) sid: &'a str,
}

/// The client may not connect.
#[derive(Debug, Serialize)]
pub(crate) struct NotConnectedDto<'a> {
    pub(crate) message: &'a str,
    pub(crate) data: ErrorFrame<'a>,
}

/// The acknowledgement of `subscribe` and `unsubscribe`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AckDto<'a> {
    pub(crate) ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent_id: Option<IdText>,
    /// The sequence number of the newest event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) head: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ErrorFrame<'a>>,
}
