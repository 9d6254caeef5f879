//! JSON-RPC 2.0, as MCP uses it.

use serde::Serialize;
use serde_json::value::RawValue;
use tokenrail_domain::JsonText;
use utoipa::ToSchema;

use crate::error::{Code, Problem};
use crate::json::fields::Fields;
use crate::json::readable::stumble;

/// The versions of the protocol that the server speaks, the newest first.
const VERSIONS: [&str; 2] = ["2025-11-25", "2025-06-18"];

const JSONRPC: &str = "2.0";
const UNKNOWN_METHOD: i32 = -32601;
/// The request is no JSON-RPC request.
const INVALID_REQUEST: i32 = -32600;
const INVALID_PARAMS: i32 = -32602;
const PARSE_ERROR: i32 = -32700;
const SERVER_ERROR: i32 = -32000;
/// MCP's own code for a resource that does not exist.
const NO_RESOURCE: i32 = -32002;

/// What the client's model is told about the server as a whole.
const INSTRUCTIONS: &str = "Tokenrail runs AI agents in the background and saves everything that they say. launch_agent \
                            starts one, wait_for_agent waits for its answer, send_message continues the conversation. \
                            Agents keep running if you stop: find them again with list_agents, and read the rest with \
                            read_agent and the last number (seq) that you have. An agent that needs permission waits \
                            for answer_permission.";

/// The id of a request: a string or a whole number, as it was sent.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct RequestId(Box<RawValue>);

impl RequestId {
    /// Takes an id, or something else of the same form, out of the fields.
    fn take(fields: &mut Fields, name: &str) -> Option<Self> {
        const EXPECTED: &str = "must be a string or a whole number";
        let given = fields.given(name, EXPECTED)?;
        let text = given.get();
        // It is sent back, and the client must be able to read it.
        let is_good = text.starts_with('"') && stumble(text).is_none() || text.parse::<i64>().is_ok();
        if !is_good {
            fields.refuse(name, EXPECTED);
        }
        Some(Self(given))
    }
}

/// A message of a client.
#[derive(Debug)]
pub(crate) enum Incoming {
    Call(Call),
    /// A notification, or a response. The server sends no requests, and does nothing for any notification.
    Unanswered,
}

/// A request of a client.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: RequestId,
    pub(crate) method: String,
    pub(crate) params: Params,
}

/// The parameters of a request.
#[derive(Debug)]
pub(crate) struct Params {
    json: JsonText,
    depth: usize,
}

impl Params {
    /// The parameters, one by one.
    pub(crate) fn fields(&self) -> Result<Fields, Problem> {
        Fields::read(self.json.as_str().as_bytes(), self.depth)
    }

    /// An object among the parameters. Empty if it is absent.
    pub(crate) fn object(&self, name: &str) -> Result<Fields, Problem> {
        let mut fields = self.fields()?;
        let object = fields.optional_object(name);
        fields.finish()?;
        Fields::read(object.as_ref().map_or("{}", JsonText::as_str).as_bytes(), self.depth)
    }

    /// The token with which the client wants to be told about progress.
    pub(crate) fn progress_token(&self) -> Result<Option<RequestId>, Problem> {
        let mut meta = self.object("_meta")?;
        let token = RequestId::take(&mut meta, "progressToken");
        meta.finish()?;
        Ok(token)
    }
}

impl Incoming {
    pub(crate) fn read(body: &[u8], depth: usize) -> Result<Self, Problem> {
        let mut fields = Fields::read(body, depth)?;
        fields.required_text("jsonrpc", |version| (version != JSONRPC).then_some("must be 2.0"));
        let id = RequestId::take(&mut fields, "id");
        let method = fields.text("method", |_| None);
        let is_reply = method.is_none() && (fields.has("result") || fields.has("error"));
        if method.is_none() && !is_reply {
            fields.refuse("method", "must be present");
        }
        let params = fields.optional_object("params");
        fields.finish()?;
        Ok(match (method, id) {
            (Some(method), Some(id)) => {
                let json = params.unwrap_or_else(|| JsonText::new_unchecked("{}"));
                Self::Call(Call { id, method, params: Params { json, depth } })
            }
            _ => Self::Unanswered,
        })
    }
}

/// The methods that the server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Initialize,
    Ping,
    ListTools,
    CallTool,
    ListResources,
    ListTemplates,
    ReadResource,
    ListPrompts,
    GetPrompt,
    Complete,
}

impl Method {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "initialize" => Self::Initialize,
            "ping" => Self::Ping,
            "tools/list" => Self::ListTools,
            "tools/call" => Self::CallTool,
            "resources/list" => Self::ListResources,
            "resources/templates/list" => Self::ListTemplates,
            "resources/read" => Self::ReadResource,
            "prompts/list" => Self::ListPrompts,
            "prompts/get" => Self::GetPrompt,
            "completion/complete" => Self::Complete,
            _ => return None,
        })
    }
}

/// The response to a request that was carried out.
#[derive(Debug, Serialize)]
pub(crate) struct Done<'a, T> {
    jsonrpc: &'static str,
    id: &'a RequestId,
    result: T,
}

impl<'a, T> Done<'a, T> {
    pub(crate) fn new(id: &'a RequestId, result: T) -> Self {
        Self { jsonrpc: JSONRPC, id, result }
    }
}

/// A result without content.
#[derive(Debug, Serialize)]
pub(crate) struct Empty {}

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
#[schema(as = McpErrorData)]
struct ErrorData {
    /// The code of the problem.
    code: &'static str,
    /// Whether the same request may succeed later.
    retryable: bool,
}

impl<'a> Failed<'a> {
    fn of(id: Option<&'a RequestId>, number: i32, code: Code, message: String) -> Self {
        let data = ErrorData { code: code.as_str(), retryable: code.retryable() };
        Self { jsonrpc: JSONRPC, id, error: ErrorDto { code: number, message, data } }
    }

    /// A request that did not reach a method.
    pub(crate) fn unread(code: Code, message: String) -> Self {
        let number = match code {
            Code::MalformedJson => PARSE_ERROR,
            Code::ValidationFailed => INVALID_REQUEST,
            _ => SERVER_ERROR,
        };
        Self::of(None, number, code, message)
    }

    pub(crate) fn refused(id: &'a RequestId, code: Code, message: String) -> Self {
        let number = match code {
            Code::ValidationFailed => INVALID_PARAMS,
            Code::NotFound => NO_RESOURCE,
            _ => SERVER_ERROR,
        };
        Self::of(Some(id), number, code, message)
    }

    pub(crate) fn no_method(id: &'a RequestId) -> Self {
        Self::of(Some(id), UNKNOWN_METHOD, Code::NotFound, "the server does not have this method".to_owned())
    }
}

/// A notification about the progress of a request.
#[derive(Debug, Serialize)]
pub(crate) struct ProgressDto<'a> {
    jsonrpc: &'static str,
    method: &'static str,
    params: ProgressParams<'a>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams<'a> {
    progress_token: &'a RequestId,
    progress: u64,
    message: String,
}

impl<'a> ProgressDto<'a> {
    pub(crate) fn new(token: &'a RequestId, progress: u64, message: String) -> Self {
        let params = ProgressParams { progress_token: token, progress, message };
        Self { jsonrpc: JSONRPC, method: "notifications/progress", params }
    }
}

/// The result of `initialize`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Initialized {
    protocol_version: &'static str,
    capabilities: Capabilities,
    server_info: ServerInfo,
    instructions: &'static str,
}

#[derive(Debug, Serialize)]
struct Capabilities {
    tools: Empty,
    resources: Empty,
    prompts: Empty,
    completions: Empty,
}

#[derive(Debug, Serialize)]
struct ServerInfo {
    name: &'static str,
    title: &'static str,
    version: &'static str,
}

/// Agrees on a version: the client's, or else the newest.
pub(crate) fn initialized(params: &Params) -> Result<Initialized, Problem> {
    let mut fields = params.fields()?;
    let wanted = fields.required_text("protocolVersion", |_| None);
    fields.finish()?;
    Ok(Initialized {
        protocol_version: version(&wanted).unwrap_or(VERSIONS[0]),
        capabilities: Capabilities {
            tools: Empty {},
            resources: Empty {},
            prompts: Empty {},
            completions: Empty {},
        },
        server_info: ServerInfo { name: "tokenrail", title: "Tokenrail", version: env!("CARGO_PKG_VERSION") },
        instructions: INSTRUCTIONS,
    })
}

/// The version of this name, if the server speaks it.
pub(crate) fn version(name: &str) -> Option<&'static str> {
    VERSIONS.into_iter().find(|version| *version == name)
}

/// Checks the header with the version on which both sides agreed.
pub(crate) fn check_version(given: Option<&str>) -> Result<(), Problem> {
    match given {
        Some(given) if version(given).is_none() => {
            let detail = format!("must be one of: {}", VERSIONS.join(", "));
            Err(Problem::parameter("MCP-Protocol-Version", detail))
        }
        _ => Ok(()),
    }
}
