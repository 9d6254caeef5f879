//! Who has sent a request, and how the response is written for it.

use serde::Serialize;

use super::discover::{SERVER, ServerInfo};
use super::input::Waited;
use super::rpc::{Call, JSONRPC, Params, RequestId};
use super::versions::ClientOffers;

/// The types of results.
const COMPLETE: &str = "complete";
const INPUT_REQUIRED: &str = "input_required";

/// How long a client may keep what changes only with the server's version, in milliseconds.
const FIXED_TTL_MS: u64 = 300_000;

/// Who has sent a request.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(super) id: RequestId,
    /// What it can be asked for. `None` if it speaks an earlier version than the newest.
    offers: Option<ClientOffers>,
    pub(super) cache: Option<CacheHint>,
}

impl Caller {
    /// Who has sent this call, and the rest of it. `offers` is what a client of the newest version can be asked for.
    pub(crate) fn of(call: Call, offers: Option<ClientOffers>) -> (Self, String, Params) {
        (Self { id: call.id, offers, cache: None }, call.method, call.params)
    }

    /// Whether it speaks the newest version, which has no `initialize`.
    pub(crate) fn is_newest(&self) -> bool {
        self.offers.is_some()
    }

    pub(crate) fn offers(&self) -> ClientOffers {
        self.offers.unwrap_or_default()
    }

    /// The same caller. The result says how long it may be kept.
    pub(crate) fn with_cache(self, cache: Option<CacheHint>) -> Self {
        Self { cache, ..self }
    }

    /// What the newest version says in each result.
    fn envelope(&self, result_type: &'static str, cache: Option<CacheHint>) -> Option<Envelope<'_>> {
        self.is_newest().then_some(Envelope {
            result_type,
            cache,
            meta: ResultMeta { server_info: SERVER, subscription: None },
        })
    }
}

/// How long a client may keep a result, and for whom.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CacheHint {
    ttl_ms: u64,
    cache_scope: &'static str,
}

impl CacheHint {
    /// The same for all clients, until the server is upgraded.
    pub(crate) const FIXED: Self = Self { ttl_ms: FIXED_TTL_MS, cache_scope: "public" };
    /// Stale at once.
    pub(crate) const STALE: Self = Self { ttl_ms: 0, cache_scope: "private" };
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    result_type: &'static str,
    #[serde(flatten)]
    cache: Option<CacheHint>,
    #[serde(rename = "_meta")]
    meta: ResultMeta<'a>,
}

#[derive(Debug, Serialize)]
struct ResultMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: ServerInfo,
    /// The subscription that ends with the result.
    #[serde(rename = "io.modelcontextprotocol/subscriptionId", skip_serializing_if = "Option::is_none")]
    subscription: Option<&'a RequestId>,
}

/// The response to a request that was carried out, or that needs more from the client.
#[derive(Debug, Serialize)]
pub(crate) struct Done<'a, T> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    result: Enveloped<'a, T>,
}

#[derive(Debug, Serialize)]
struct Enveloped<'a, T> {
    #[serde(flatten)]
    result: T,
    #[serde(flatten)]
    envelope: Option<Envelope<'a>>,
}

impl<'a, T> Done<'a, T> {
    pub(crate) fn new(caller: &'a Caller, result: T) -> Self {
        Self::of(caller, result, caller.envelope(COMPLETE, caller.cache))
    }

    /// A result that asks the client for more, so that it repeats the request.
    pub(crate) fn asking(caller: &'a Caller, result: T) -> Self {
        Self::of(caller, result, caller.envelope(INPUT_REQUIRED, None))
    }

    /// The end of a subscription.
    pub(super) fn with_subscription(caller: &'a Caller, result: T) -> Self {
        let mut envelope = caller.envelope(COMPLETE, None);
        if let Some(envelope) = &mut envelope {
            envelope.meta.subscription = Some(&caller.id);
        }
        Self::of(caller, result, envelope)
    }

    fn of(caller: &'a Caller, result: T, envelope: Option<Envelope<'a>>) -> Self {
        Self { jsonrpc: JSONRPC, id: &caller.id, result: Enveloped { result, envelope } }
    }
}

impl<'a> Done<'a, Waited> {
    /// The end of a wait.
    pub(crate) fn waited(caller: &'a Caller, result: Waited) -> Self {
        match result {
            Waited::Over(_) => Self::new(caller, result),
            Waited::Asks(_) => Self::asking(caller, result),
        }
    }
}
