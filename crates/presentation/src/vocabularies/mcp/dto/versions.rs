//! The versions of the protocol. A client of the newest one says with each request which version it speaks, who it is
//! and what it can do. A client of an earlier one agrees on a version with `initialize`, and the server keeps nothing
//! of that.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::rpc::{Call, Params};
use crate::error::Problem;
use crate::json::fields::Fields;

/// The version without `initialize`.
pub(super) const NEWEST: &str = "2026-07-28";
/// The versions with `initialize`, the newest first.
pub(super) const EARLIER: [&str; 2] = ["2025-11-25", "2025-06-18"];
/// All versions, the newest first.
pub(super) const ALL: [&str; 3] = [NEWEST, EARLIER[0], EARLIER[1]];

/// What a request of the newest version says about itself, among its parameters.
const META: &str = "_meta";
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Marks a name in a header that is written in base64, because a header cannot contain all characters.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// The headers that repeat parts of a request, so that a proxy need not read the body.
#[derive(Debug, Default)]
pub(crate) struct Mirrors {
    pub(crate) version: Option<String>,
    pub(crate) method: Option<String>,
    pub(crate) name: Option<String>,
}

/// What a client can be asked for. A client of an earlier version can be asked for nothing.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct ClientOffers {
    /// To show a form to a person.
    pub(crate) forms: bool,
    /// To let its model write a message.
    pub(crate) sampling: bool,
    /// To list its folders.
    pub(crate) roots: bool,
}

/// Why a request of the newest version is not carried out at all.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// A header is missing, or differs from the body.
    Header(&'static str),
    /// The server does not speak this version.
    Version(String),
    /// The request does not say about itself what it must.
    Meta(Problem),
}

/// What a request says about itself, and the part of it that a header repeats.
struct Claims {
    meta: Result<Fields, Problem>,
    version: Option<String>,
    name: Option<String>,
}

impl Claims {
    fn read(call: &Call) -> Self {
        let nothing = |meta| Self { meta, version: None, name: None };
        let named_by = named_by(&call.method).unwrap_or_default();
        let mut fields = match call.params.pick(&[META, named_by]) {
            Ok(fields) => fields,
            Err(problem) => return nothing(Err(problem)),
        };
        let name = fields.text(named_by, |_| None);
        match call.params.object(META) {
            Ok(mut meta) => {
                let version = meta.text(META_VERSION, |_| None);
                Self { meta: Ok(meta), version, name }
            }
            Err(problem) => nothing(Err(problem)),
        }
    }
}

/// The parameter that `Mcp-Name` repeats. `None` if the method has no such header.
fn named_by(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    }
}

/// Reads what the client says about itself. `None` if it speaks an earlier version, whose header is checked elsewhere.
pub(crate) fn client(call: &Call, mirrors: &Mirrors) -> Result<Option<ClientOffers>, Unfit> {
    let claims = Claims::read(call);
    let is_newest = mirrors.version.as_deref() == Some(NEWEST);
    let is_earlier = |version: &String| EARLIER.contains(&version.as_str());
    let says_earlier = claims.version.as_ref().is_none_or(is_earlier);
    if !is_newest && says_earlier && (claims.version.is_none() || claims.version == mirrors.version) {
        return Ok(None);
    }
    let mut meta = claims.meta.map_err(Unfit::Meta)?;
    let Some(version) = claims.version else {
        return Err(Unfit::Meta(Problem::field(META_VERSION, "must be present, and a string")));
    };
    if mirrors.version.as_ref() != Some(&version) {
        return Err(Unfit::Header("MCP-Protocol-Version"));
    }
    if version != NEWEST {
        return Err(Unfit::Version(version));
    }
    let offers = offers(&mut meta, &call.params).and_then(|offers| meta.finish().map(|()| offers));
    let offers = offers.map_err(Unfit::Meta)?;
    if mirrors.method.as_ref() != Some(&call.method) {
        return Err(Unfit::Header("Mcp-Method"));
    }
    let is_named = named_by(&call.method).is_some();
    let named = mirrors.name.as_deref().and_then(plain);
    if is_named && (named.is_none() || named.as_deref() != claims.name.as_deref()) {
        return Err(Unfit::Header("Mcp-Name"));
    }
    Ok(Some(offers))
}

fn offers(meta: &mut Fields, params: &Params) -> Result<ClientOffers, Problem> {
    if !meta.has(META_CAPABILITIES) {
        meta.refuse(META_CAPABILITIES, "must be present");
    }
    let Some(capabilities) = meta.object(META_CAPABILITIES) else { return Ok(ClientOffers::default()) };
    let mut capabilities = params.inner(&capabilities)?;
    let forms = match capabilities.optional_object("elicitation") {
        // An empty object means forms.
        Some(modes) => {
            let modes = params.inner(&modes)?;
            modes.has("form") || !modes.has("url")
        }
        None => false,
    };
    let (sampling, roots) = (capabilities.has("sampling"), capabilities.has("roots"));
    capabilities.finish()?;
    Ok(ClientOffers { forms, sampling, roots })
}

/// The name in a header. `None` if it is not well encoded.
fn plain(header: &str) -> Option<Cow<'_, str>> {
    let encoded = header.strip_prefix(ENCODED.0).and_then(|rest| rest.strip_suffix(ENCODED.1));
    let Some(encoded) = encoded else { return Some(Cow::Borrowed(header)) };
    String::from_utf8(STANDARD.decode(encoded).ok()?).ok().map(Cow::Owned)
}

/// Checks the header with the version on which both sides agreed.
pub(crate) fn check_version(given: Option<&str>) -> Result<(), Problem> {
    match given {
        Some(given) if !ALL.contains(&given) => {
            Err(Problem::parameter("MCP-Protocol-Version", format!("must be one of: {}", ALL.join(", "))))
        }
        _ => Ok(()),
    }
}
