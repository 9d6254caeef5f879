//! A client of a running server, over its own API.

use std::path::Path;
use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde::Deserialize;
use serde_json::Value;

use super::{Exit, Failure};
use crate::address;
use crate::config::Config;
use crate::token;

/// How long a connection may take: the server is on this machine, or near.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// A running server, as this program talks to it.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
}

/// What the server says of a request that it refused.
#[derive(Debug, Deserialize)]
struct Problem {
    #[serde(default)]
    title: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    code: String,
}

impl Client {
    pub(crate) fn new(base: String, token: Option<String>) -> Result<Self, Failure> {
        let http = reqwest::Client::builder().no_proxy().connect_timeout(CONNECT_TIMEOUT).build()?;
        Ok(Self { http, base, token })
    }

    /// The server that runs on the data folder, or else the one at the configured address.
    ///
    /// # Errors
    /// [`Exit::Unreachable`] where none answers.
    pub(crate) async fn reach(config: &Config) -> Result<Self, Failure> {
        let address = address::read(&config.data_dir).unwrap_or_else(|| config.listen.to_string());
        let token = if config.insecure_no_auth { None } else { token::read(&config.data_dir).ok() };
        let client = Self::new(format!("http://{address}"), token)?;
        client.get("/healthz").await?;
        Ok(client)
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Response, Failure> {
        self.send(self.request(Method::GET, path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let answer = self.send(self.request(Method::POST, path).json(body)).await?;
        Ok(answer.json().await?)
    }

    /// Opens a stream of events after `since`.
    pub(crate) async fn events(&self, id: &str, since: u64, keep: bool) -> Result<Response, Failure> {
        let path = format!("/api/agents/{id}/events?since={since}&keep={keep}");
        self.send(self.request(Method::GET, &path).header("accept", "text/event-stream")).await
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let answer = request.send().await.map_err(|error| {
            let base = &self.base;
            let hint = format!("cannot reach a server at {base}; start one with: tokenrail serve ({error})");
            Failure::new(Exit::Unreachable, hint)
        })?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let status = answer.status();
        let problem: Option<Problem> = answer.json().await.ok();
        let text = match problem {
            Some(Problem { title, detail, code }) => {
                let sentence = if detail.is_empty() { title } else { detail };
                format!("{sentence} ({code})")
            }
            None => format!("the server answered {status}"),
        };
        Err(Failure::new(Exit::Failed, text))
    }
}

/// Whether a server runs on this folder, as far as its address file tells.
pub(crate) fn has_address(data_dir: &Path) -> bool {
    address::read(data_dir).is_some()
}
