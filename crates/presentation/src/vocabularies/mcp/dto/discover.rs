//! What the server says about itself.

use serde::Serialize;

use super::rpc::{Empty, Params};
use super::versions::{ALL, EARLIER};
use crate::error::Problem;

/// Instructions for the client's model: what the server is for.
const INSTRUCTIONS: &str = "Tokenrail runs AI agents in the background and saves everything that they say. launch_agent \
                            starts one, wait_for_agent waits for its answer, send_message continues the conversation. \
                            Agents keep running if you stop: find them again with list_agents, and read the rest with \
                            read_agent and the last number (seq) that you have. An agent that needs permission waits \
                            for answer_permission.";

pub(super) const SERVER: ServerInfo =
    ServerInfo { name: "tokenrail", title: "Tokenrail", version: env!("CARGO_PKG_VERSION") };

/// The result of `initialize`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Initialized {
    protocol_version: &'static str,
    capabilities: Capabilities,
    server_info: ServerInfo,
    instructions: &'static str,
}

/// The result of `server/discover`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Discovered {
    supported_versions: [&'static str; ALL.len()],
    capabilities: Capabilities,
    instructions: &'static str,
}

#[derive(Debug, Default, Serialize)]
struct Capabilities {
    tools: Empty,
    resources: ResourceCapability,
    prompts: Empty,
    completions: Empty,
}

#[derive(Debug, Default, Serialize)]
struct ResourceCapability {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    subscribe: bool,
}

#[derive(Debug, Serialize)]
pub(super) struct ServerInfo {
    name: &'static str,
    title: &'static str,
    version: &'static str,
}

/// Agrees on a version: the client's, or else the newest of those with `initialize`.
pub(crate) fn initialized(params: &Params) -> Result<Initialized, Problem> {
    let mut fields = params.fields()?;
    let wanted = fields.required_text("protocolVersion", |_| None);
    fields.finish()?;
    let known = EARLIER.into_iter().find(|version| *version == wanted);
    Ok(Initialized {
        protocol_version: known.unwrap_or(EARLIER[0]),
        capabilities: Capabilities::default(),
        server_info: SERVER,
        instructions: INSTRUCTIONS,
    })
}

pub(crate) fn discovered() -> Discovered {
    let resources = ResourceCapability { subscribe: true };
    let capabilities = Capabilities { resources, ..Capabilities::default() };
    Discovered { supported_versions: ALL, capabilities, instructions: INSTRUCTIONS }
}
