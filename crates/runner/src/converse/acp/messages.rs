//! Messages of the Agent Client Protocol.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::converse::prompt::{EncodedImage, EncodedPrompt};
use crate::converse::raw_object::raw_objects;
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
pub(super) struct AskPrompt<'a> {
    session_id: &'a str,
    prompt: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
enum Block<'a> {
    Image { mime_type: &'a str, data: &'a str },
    Text { text: &'a str },
}

impl<'a> AskPrompt<'a> {
    pub(super) fn new(session_id: &'a str, prompt: &'a EncodedPrompt) -> Self {
        let EncodedPrompt { text, images } = prompt;
        let image = |EncodedImage { media_type, data }: &'a EncodedImage| Block::Image {
            mime_type: media_type,
            data,
        };
        Self { session_id, prompt: images.iter().map(image).chain([Block::Text { text }]).collect() }
    }
}

raw_objects! {
    /// The answer to `initialize`.
    #[serde(rename_all = "camelCase")]
    pub(super) struct Initialized<'a> {
        protocol_version,
        agent_capabilities,
        auth_methods,
        agent_info,
    }

    struct AgentInfo<'a> { name }

    #[serde(rename_all = "camelCase")]
    struct AgentCapabilities<'a> { load_session, session_capabilities, prompt_capabilities }

    struct PromptCapabilities<'a> { image }

    struct SessionCapabilities<'a> { resume }

    /// A login method.
    pub(super) struct AuthMethod<'a> {
        pub(super) id,
        pub(super) name,
        #[serde(rename = "type")]
        pub(super) kind,
    }
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

    /// Whether the agent accepts images with a prompt.
    pub(super) fn sees_images(&self) -> bool {
        let agent: AgentCapabilities<'_> = read(self.agent_capabilities);
        let prompt: PromptCapabilities<'_> = read(agent.prompt_capabilities);
        prompt.image.is_some_and(|can| can.get() == "true")
    }

    pub(super) fn agent_name(&self) -> Option<String> {
        let agent: AgentInfo<'_> = read(self.agent_info);
        text(agent.name)
    }

    pub(super) fn methods(&self) -> Vec<AuthMethod<'a>> {
        elements(self.auth_methods)
    }
}

raw_objects! {
    /// The answer to `session/new`, `session/load` and `session/resume`.
    #[serde(rename_all = "camelCase")]
    pub(super) struct Begun<'a> {
        pub(super) session_id,
        modes,
        /// Not part of the protocol yet, but some agents send it.
        pub(super) models,
        config_options,
    }

    #[serde(rename_all = "camelCase")]
    struct Modes<'a> { current_mode_id }

    struct ConfigOption<'a> { id, category }
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

raw_objects! {
    pub(super) struct Failure<'a> { pub(super) code, pub(super) message, data }

    struct FailureData<'a> { details }
}

impl Failure<'_> {
    pub(super) fn details(&self) -> Option<String> {
        let data: FailureData<'_> = read(self.data);
        text(data.details)
    }
}

raw_objects! {
    /// The parameters of `$/cancel_request`.
    pub(super) struct Stopped<'a> {
        #[serde(rename = "requestId")]
        pub(super) request,
    }

    /// The parameters of `session/update`.
    pub(super) struct Told<'a> { update }

    #[serde(rename_all = "camelCase")]
    struct Update<'a> { session_update }
}

impl Told<'_> {
    /// Whether the agent says or does something. It may send other updates even after its turn has ended.
    pub(super) fn is_speech(&self) -> bool {
        let update: Update<'_> = read(self.update);
        let kind = text(update.session_update);
        matches!(kind.as_deref(), Some("agent_message_chunk" | "agent_thought_chunk" | "tool_call"))
    }
}

raw_objects! {
    /// The parameters of `session/request_permission`.
    #[serde(rename_all = "camelCase")]
    pub(super) struct AskPermission<'a> { pub(super) tool_call, options }
}

impl<'a> AskPermission<'a> {
    pub(super) fn options(&self) -> Vec<AcpOption<'a>> {
        elements(self.options)
    }
}

raw_objects! {
    #[serde(rename_all = "camelCase")]
    pub(super) struct AcpOption<'a> {
        pub(super) option_id,
        pub(super) name,
        pub(super) kind,
    }

    /// The tool call that a permission request is about.
    #[serde(rename_all = "camelCase")]
    pub(super) struct AskedToolCall<'a> {
        pub(super) tool_call_id,
        pub(super) title,
        pub(super) name,
        pub(super) kind,
        pub(super) locations,
        pub(super) content,
        pub(super) raw_input,
    }

    /// The parameters of `fs/read_text_file` and `fs/write_text_file`.
    pub(super) struct FileRequest<'a> {
        pub(super) path,
        /// The number of the first line, from 1.
        pub(super) line,
        /// The number of lines.
        pub(super) limit,
        pub(super) content,
    }
}

/// The elements of a list; empty if the value is not a list. A malformed element becomes an empty one.
fn elements<'a, T: Deserialize<'a> + Default>(list: Option<&'a RawValue>) -> Vec<T> {
    let elements: Vec<&RawValue> =
        list.and_then(|list| serde_json::from_str(list.get()).ok()).unwrap_or_default();
    elements.into_iter().map(|element| read(Some(element))).collect()
}
