//! `runner = "http"`: a model behind an HTTP API.

use reqwest::Url;
use serde_json::{Map, Value};
use tokenrail_runner::{ModelApi, ModelSettings};

use crate::config::TOKEN_VARIABLE;
use crate::config::problem::{Wrong, with_suggestion};

/// The keys as they are written.
pub(super) struct HttpKeys {
    pub(super) base_url: Option<String>,
    pub(super) api_key_env: Option<String>,
    pub(super) model: Option<String>,
    pub(super) system: Option<String>,
    pub(super) max_tokens: Option<u32>,
    pub(super) parameters: Option<Map<String, Value>>,
}

/// Whether the key is sent unencrypted to another machine.
pub(in crate::config) fn sends_key_in_clear(model: &ModelSettings) -> bool {
    let url = Url::parse(&model.base_url).ok().filter(|url| url.scheme() == "http");
    let is_here = |url: &Url| matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    model.api_key_env.is_some() && url.is_some_and(|url| !is_here(&url))
}

impl HttpKeys {
    pub(super) fn check(self, format: &str) -> Result<ModelSettings, Wrong> {
        let Some(api) = ModelApi::from_name(format) else {
            let names = || ModelApi::ALL.into_iter().map(ModelApi::name);
            let (what, known) = (with_suggestion(format, names()), names().collect::<Vec<_>>().join(", "));
            return Err((
                "format",
                format!("format: unknown format {what} (available with runner = \"http\": {known})"),
            ));
        };
        let usual = ModelSettings::official(api);
        // A key is sent to another address only if the configuration says so.
        let api_key_env = self.api_key_env.or_else(|| usual.api_key_env.filter(|_| self.base_url.is_none()));
        if api_key_env.as_deref().is_some_and(|name| name.is_empty() || name.contains(['=', '\0'])) {
            let what =
                "api_key_env: must be the name of an environment variable; omit it if no key is needed";
            return Err(("api_key_env", what.to_owned()));
        }
        if api_key_env.as_deref() == Some(TOKEN_VARIABLE) {
            return Err((
                "api_key_env",
                format!(
                    "api_key_env: {TOKEN_VARIABLE} is not a key of a model API; name the variable that holds the API key"
                ),
            ));
        }
        if self.max_tokens == Some(0) {
            return Err(("max_tokens", "max_tokens: 0 is too small; it must be at least 1".to_owned()));
        }
        Ok(ModelSettings {
            base_url: self.base_url.map_or(Ok(usual.base_url), checked)?,
            api_key_env,
            model: self.model,
            system: self.system,
            max_tokens: self.max_tokens,
            parameters: self.parameters.unwrap_or_default(),
            api,
        })
    }
}

/// Many readers see the address, so it must not contain a secret.
fn checked(base_url: String) -> Result<String, Wrong> {
    let wrong = |what: &str| {
        ("base_url", format!("base_url: {what}; expected a form like \"http://127.0.0.1:11434/v1\""))
    };
    let url = Url::parse(&base_url).map_err(|_| wrong("not a valid URL"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(wrong("must begin with http:// or https://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong(
            "must not contain a user name or password; put the key into the variable that \
             api_key_env names",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(wrong("must not have a query or a fragment"));
    }
    Ok(base_url)
}
