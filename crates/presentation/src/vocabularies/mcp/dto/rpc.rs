//! JSON-RPC 2.0, as MCP uses it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokenrail_domain::JsonText;

use crate::error::Problem;
use crate::json::fields::Fields;
use crate::json::readable::stumble;

pub(super) const JSONRPC: &str = "2.0";

/// The maximum length of an id as JSON, in bytes. It is repeated in each notification.
const ID_BYTES: usize = 1_024;

/// The id of a request: a string or a whole number, as it was sent.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct RequestId(Box<RawValue>);

impl RequestId {
    /// Takes an id, or something else of the same form, out of the fields.
    fn take(fields: &mut Fields, name: &str) -> Option<Self> {
        const EXPECTED: &str = "must be a string or a whole number, of at most 1,024 bytes as JSON";
        let given = Self(fields.given(name, EXPECTED)?);
        if !given.is_good() {
            fields.refuse(name, EXPECTED);
        }
        Some(given)
    }

    /// The id of a message that cannot be read, so that its client does not wait for a response.
    pub(crate) fn of_unreadable(body: &[u8]) -> Option<Self> {
        // Serde takes an array for an object whose fields have no names.
        let object = Some(body.trim_ascii_start()).filter(|body| body.starts_with(b"{"))?;
        let named: Named = serde_json::from_slice(object).ok()?;
        named.id.map(Self).filter(Self::is_good)
    }

    /// It is sent back, and the client must be able to read it.
    fn is_good(&self) -> bool {
        let text = self.0.get();
        let is_readable = text.starts_with('"') && stumble(text).is_none() || text.parse::<i64>().is_ok();
        is_readable && text.len() <= ID_BYTES
    }
}

/// The id of a message that cannot be read otherwise: some characters of a text, or some numbers, are valid JSON
/// without being readable.
#[derive(Deserialize)]
struct Named {
    id: Option<Box<RawValue>>,
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

    /// Some of the parameters, without a copy of the others.
    pub(super) fn pick(&self, wanted: &[&str]) -> Result<Fields, Problem> {
        Fields::pick(self.json.as_str().as_bytes(), wanted, "").map(|(fields, _)| fields)
    }

    /// The fields of an object among the parameters.
    pub(super) fn inner(&self, object: &JsonText) -> Result<Fields, Problem> {
        Fields::read(object.as_str().as_bytes(), self.depth)
    }

    /// An object among the parameters. Empty if it is absent.
    pub(crate) fn object(&self, name: &str) -> Result<Fields, Problem> {
        let mut fields = self.pick(&[name])?;
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

/// A result without content.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Empty {}

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
