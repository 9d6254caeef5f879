//! Messages of the Agent Client Protocol.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::converse::rpc::{read, text};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialize {
    protocol_version: u64,
    client_capabilities: ClientCapabilities,
    client_info: ClientInfo,
}

#[derive(Serialize)]
struct ClientCapabilities {
    fs: FileCapabilities,
    terminal: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileCapabilities {
    read_text_file: bool,
    write_text_file: bool,
}

#[derive(Serialize)]
struct ClientInfo {
    name: &'static str,
    title: &'static str,
    version: &'static str,
}

impl Initialize {
    pub(super) fn new(protocol_version: u64, files: bool) -> Self {
        let fs = FileCapabilities { read_text_file: files, write_text_file: files };
        let version = env!("CARGO_PKG_VERSION");
        Self {
            protocol_version,
            client_capabilities: ClientCapabilities { fs, terminal: false },
            client_info: ClientInfo { name: "tokenrail", title: "Tokenrail", version },
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Authenticate<'a> {
    pub(super) method_id: &'a str,
}

/// The parameters of `session/new`, `session/load` and `session/resume`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Begin<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<&'a str>,
    pub(super) cwd: &'a str,
    pub(super) mcp_servers: [(); 0],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Session<'a> {
    pub(super) session_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetMode<'a> {
    pub(super) session_id: &'a str,
    pub(super) mode_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetModel<'a> {
    pub(super) session_id: &'a str,
    pub(super) model_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SetOption<'a> {
    pub(super) session_id: &'a str,
    pub(super) config_id: &'a str,
    pub(super) value: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Prompt<'a> {
    session_id: &'a str,
    prompt: [Text<'a>; 1],
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "text")]
struct Text<'a> {
    text: &'a str,
}

impl<'a> Prompt<'a> {
    pub(super) fn new(session_id: &'a str, text: &'a str) -> Self {
        Self { session_id, prompt: [Text { text }] }
    }
}

/// The answer to `initialize`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Initialized<'a> {
    #[serde(borrow)]
    protocol_version: Option<&'a RawValue>,
    #[serde(borrow)]
    agent_capabilities: Option<&'a RawValue>,
    #[serde(borrow)]
    auth_methods: Option<&'a RawValue>,
    #[serde(borrow)]
    agent_info: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct AgentInfo<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentCapabilities<'a> {
    #[serde(borrow)]
    load_session: Option<&'a RawValue>,
    #[serde(borrow)]
    session_capabilities: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct SessionCapabilities<'a> {
    #[serde(borrow)]
    resume: Option<&'a RawValue>,
}

/// A login method.
#[derive(Debug, Default, Deserialize)]
pub(super) struct AuthMethod<'a> {
    #[serde(borrow)]
    pub(super) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<&'a RawValue>,
}

impl<'a> Initialized<'a> {
    pub(super) fn version(&self) -> Option<u64> {
        self.protocol_version?.get().parse().ok()
    }

    /// Whether a session can be loaded, and whether it can be resumed.
    pub(super) fn sessions(&self) -> (bool, bool) {
        let agent: AgentCapabilities<'_> = read(self.agent_capabilities);
        let session: SessionCapabilities<'_> = read(agent.session_capabilities);
        let can_load = agent.load_session.is_some_and(|can| can.get() == "true");
        (can_load, session.resume.is_some_and(|can| can.get().starts_with('{')))
    }

    pub(super) fn agent_name(&self) -> Option<String> {
        let agent: AgentInfo<'_> = read(self.agent_info);
        text(agent.name)
    }

    pub(super) fn methods(&self) -> Vec<AuthMethod<'a>> {
        elements(self.auth_methods)
    }
}

/// The answer to `session/new`, `session/load` and `session/resume`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Begun<'a> {
    #[serde(borrow)]
    pub(super) session_id: Option<&'a RawValue>,
    #[serde(borrow)]
    modes: Option<&'a RawValue>,
    /// Not part of the protocol yet, but some agents send it.
    #[serde(borrow)]
    pub(super) models: Option<&'a RawValue>,
    #[serde(borrow)]
    config_options: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Modes<'a> {
    #[serde(borrow)]
    current_mode_id: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct ConfigOption<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    category: Option<&'a RawValue>,
}

impl Begun<'_> {
    pub(super) fn mode(&self) -> Option<String> {
        let modes: Modes<'_> = read(self.modes);
        text(modes.current_mode_id)
    }

    /// The id of the option that selects the model.
    pub(super) fn model_option(&self) -> Option<String> {
        let options: Vec<ConfigOption<'_>> = elements(self.config_options);
        let option = options.into_iter().find(|option| text(option.category).as_deref() == Some("model"));
        text(option?.id)
    }
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Failure<'a> {
    #[serde(borrow)]
    pub(super) code: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
struct FailureData<'a> {
    #[serde(borrow)]
    details: Option<&'a RawValue>,
}

impl Failure<'_> {
    pub(super) fn details(&self) -> Option<String> {
        let data: FailureData<'_> = read(self.data);
        text(data.details)
    }
}

/// The parameters of `$/cancel_request`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Stopped<'a> {
    #[serde(borrow, rename = "requestId")]
    pub(super) request: Option<&'a RawValue>,
}

/// The parameters of `session/update`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Told<'a> {
    #[serde(borrow)]
    update: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Update<'a> {
    #[serde(borrow)]
    session_update: Option<&'a RawValue>,
}

impl Told<'_> {
    /// Whether the agent says or does something. It may send other updates even after its turn has ended.
    pub(super) fn is_speech(&self) -> bool {
        let update: Update<'_> = read(self.update);
        let kind = text(update.session_update);
        matches!(kind.as_deref(), Some("agent_message_chunk" | "agent_thought_chunk" | "tool_call"))
    }
}

/// The parameters of `session/request_permission`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AskPermission<'a> {
    #[serde(borrow)]
    pub(super) tool_call: Option<&'a RawValue>,
    #[serde(borrow)]
    options: Option<&'a RawValue>,
}

impl<'a> AskPermission<'a> {
    pub(super) fn options(&self) -> Vec<PermissionOption<'a>> {
        elements(self.options)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PermissionOption<'a> {
    #[serde(borrow)]
    pub(super) option_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) kind: Option<&'a RawValue>,
}

/// The tool call that a permission request is about.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AskedToolCall<'a> {
    #[serde(borrow)]
    pub(super) tool_call_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) title: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) kind: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) locations: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) raw_input: Option<&'a RawValue>,
}

/// The parameters of `fs/read_text_file` and `fs/write_text_file`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct FileRequest<'a> {
    #[serde(borrow)]
    pub(super) path: Option<&'a RawValue>,
    /// The number of the first line, from 1.
    #[serde(borrow)]
    pub(super) line: Option<&'a RawValue>,
    /// The number of lines.
    #[serde(borrow)]
    pub(super) limit: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
}

/// The elements of a list; empty if the value is not a list. A malformed element becomes an empty one.
fn elements<'a, T: Deserialize<'a> + Default>(list: Option<&'a RawValue>) -> Vec<T> {
    let elements: Vec<&RawValue> =
        list.and_then(|list| serde_json::from_str(list.get()).ok()).unwrap_or_default();
    elements.into_iter().map(|element| read(Some(element))).collect()
}
