//! What agents of this server can do, in the protocol's words.

use serde::Serialize;
use utoipa::ToSchema;

/// The capabilities of every agent.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgUiCapabilities)]
pub(crate) struct CapabilitiesDto {
    transport: TransportCapabilities,
    tools: ToolCapabilities,
    reasoning: ReasoningCapabilities,
    human_in_the_loop: ApprovalCapabilities,
    custom: CustomCapabilities,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgUiTransport)]
struct TransportCapabilities {
    streaming: bool,
    resumable: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AgUiTools)]
struct ToolCapabilities {
    supported: bool,
    client_provided: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgUiReasoning)]
struct ReasoningCapabilities {
    supported: bool,
    streaming: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgUiApprovals)]
struct ApprovalCapabilities {
    supported: bool,
    approvals: bool,
    interrupts: bool,
}

/// What the protocol has no field for.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AgUiCustomCapabilities)]
struct CustomCapabilities {
    /// The types of activities that agents may report.
    activities: [&'static str; 1],
}

/// The same for every agent type.
pub(crate) const CAPABILITIES: CapabilitiesDto = CapabilitiesDto {
    transport: TransportCapabilities { streaming: true, resumable: true },
    tools: ToolCapabilities { supported: true, client_provided: false },
    reasoning: ReasoningCapabilities { supported: true, streaming: true },
    human_in_the_loop: ApprovalCapabilities { supported: true, approvals: true, interrupts: true },
    custom: CustomCapabilities { activities: ["PLAN"] },
};
