//! Subscriptions to transcripts, and the notifications that they have grown.

use serde::Serialize;
use tokenrail_domain::AgentId;

use super::caller::{Caller, Done};
use super::resources::{agent_at, uri};
use super::rpc::{Empty, JSONRPC, Params, RequestId};
use crate::error::Problem;

/// How many transcripts one subscription may be about.
const RESOURCES: usize = 32;

/// Reads which transcripts a client wants to hear of. The server has no other notifications, so it ignores wishes for
/// them.
pub(crate) fn listen(params: &Params) -> Result<Vec<AgentId>, Problem> {
    let mut fields = params.pick(&["notifications"])?;
    let filter = fields.object("notifications");
    if filter.is_none() {
        fields.refuse("notifications", "must be present, and an object");
    }
    fields.finish()?;
    let Some(filter) = filter else { return Ok(Vec::new()) };
    let mut filter = params.inner(&filter)?;
    let uris = filter.texts("resourceSubscriptions", |uris| {
        (RESOURCES < uris.len()).then_some("must contain at most 32 URIs")
    });
    filter.finish()?;
    let mut agents: Vec<_> = uris.unwrap_or_default().iter().filter_map(|uri| agent_at(uri).ok()).collect();
    agents.sort_unstable();
    agents.dedup();
    Ok(agents)
}

/// A notification of a subscription.
#[derive(Debug, Serialize)]
pub(crate) struct Notification<'a, T> {
    jsonrpc: &'static str,
    method: &'static str,
    params: NotificationParams<'a, T>,
}

#[derive(Debug, Serialize)]
struct NotificationParams<'a, T> {
    #[serde(rename = "_meta")]
    meta: SubscriptionMeta<'a>,
    #[serde(flatten)]
    about: T,
}

#[derive(Debug, Serialize)]
struct SubscriptionMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
    id: &'a RequestId,
}

/// What the server is going to tell.
#[derive(Debug, Serialize)]
pub(crate) struct Acknowledged {
    notifications: AcknowledgedFilter,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AcknowledgedFilter {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_subscriptions: Vec<String>,
}

/// A transcript has grown, or is gone.
#[derive(Debug, Serialize)]
pub(crate) struct Updated {
    uri: String,
}

impl<'a> Notification<'a, Acknowledged> {
    pub(crate) fn acknowledged(caller: &'a Caller, agents: impl Iterator<Item = AgentId>) -> Self {
        let notifications = AcknowledgedFilter { resource_subscriptions: agents.map(uri).collect() };
        Self::of(caller, "notifications/subscriptions/acknowledged", Acknowledged { notifications })
    }
}

impl<'a> Notification<'a, Updated> {
    pub(crate) fn updated(caller: &'a Caller, agent: AgentId) -> Self {
        Self::of(caller, "notifications/resources/updated", Updated { uri: uri(agent) })
    }
}

impl<'a, T> Notification<'a, T> {
    fn of(caller: &'a Caller, method: &'static str, about: T) -> Self {
        let meta = SubscriptionMeta { id: &caller.id };
        Self { jsonrpc: JSONRPC, method, params: NotificationParams { meta, about } }
    }
}

impl<'a> Done<'a, Empty> {
    /// The end of a subscription.
    pub(crate) fn unsubscribed(caller: &'a Caller) -> Self {
        Self::with_subscription(caller, Empty {})
    }
}
