//! A client of a running server, over its own API.

pub(super) mod forward;

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Body, Method, RequestBuilder, Response, StatusCode, Url, header};
use serde::Deserialize;
use serde_json::Value;
use tokenrail_persistence::is_in_use;
use tokio::time::timeout;

use super::{Exit, Failure};
use crate::address;
use crate::config::{Config, TOKEN_VARIABLE, Target};
use crate::server::Server;
use crate::token::{self, TokenError};

/// How long connecting may take. The server is on this machine or near it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the server may take to begin its response. A deletion waits for the end of an agent.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// A running server, and the credentials for it.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base: Url,
    token: Option<String>,
    token_of: TokenOf,
    /// The data folder, if a server that accepts the token uses it.
    data_folder: Option<PathBuf>,
    /// Where a browser reaches the server, if not at `base`.
    public: Option<String>,
    /// The flags with which another command reaches this server.
    repeat: String,
}

/// Where the token comes from, for the advice if it is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TokenOf {
    DataFolder,
    Environment,
}

/// The error that the server returns for a request.
#[derive(Debug, Deserialize)]
struct Problem {
    #[serde(default)]
    title: String,
    #[serde(default)]
    detail: String,
    #[serde(default)]
    code: String,
    #[serde(default)]
    errors: Vec<FieldProblem>,
}

#[derive(Debug, Deserialize)]
struct FieldProblem {
    #[serde(default)]
    pointer: String,
    #[serde(default)]
    parameter: String,
    detail: String,
}

/// A one-time login code.
#[derive(Deserialize)]
struct LoginCode {
    code: String,
}

impl Client {
    /// A client of a server that this process has started with this configuration.
    pub(crate) fn of_own(server: &Server, data_dir: &Path, repeat: &str) -> Result<Self, Failure> {
        let client = Self::with(Url::parse(&server.local_url())?, server.token(), TokenOf::DataFolder)?;
        Ok(Self { data_folder: Some(data_dir.to_owned()), repeat: repeat.to_owned(), ..client })
    }

    fn with(base: Url, token: Option<String>, token_of: TokenOf) -> Result<Self, Failure> {
        // Without redirects, which would repeat a launch as a GET.
        let http = reqwest::Client::builder().no_proxy().redirect(Policy::none());
        let http = http.connect_timeout(CONNECT_TIMEOUT).build()?;
        Ok(Self { http, base, token, token_of, data_folder: None, public: None, repeat: String::new() })
    }

    /// Connects to the server that the user names, or else to the server that runs on the data folder. It sends the
    /// folder's token to no other server: not to a server at a URL or at the configured address, and not to a program
    /// that listens on the address of a server that has died.
    ///
    /// # Errors
    /// [`Exit::Unreachable`] if no server answers.
    pub(crate) async fn reach(config: &Config) -> Result<Self, Failure> {
        let environment = config.token.as_ref().filter(|_| !config.insecure_no_auth);
        let environment = environment.map(|token| token.reveal().to_owned());
        let mut client = match &config.target {
            Target::Url(url) => Self::with(url.clone(), environment, TokenOf::Environment)?,
            // The server listens there with TLS, and on another address without it.
            Target::Address(address) if config.tls.is_some() && *address == config.listen => {
                Self::of_folder(config)?
            }
            Target::Address(address) if environment.is_some() => {
                Self::with(url_of(*address)?, environment, TokenOf::Environment)?
            }
            Target::Address(address) => {
                let client = Self::with(url_of(*address)?, folder_token(config)?, TokenOf::DataFolder)?;
                // Without a token, it may be the server of another folder.
                Self { data_folder: client.token.as_ref().map(|_| config.data_dir.clone()), ..client }
            }
            Target::DataFolder => Self::of_folder(config)?,
        };
        client.repeat.clone_from(&config.repeat);
        if client.data_folder.is_some() {
            client.public = config.public_url.as_ref().map(ToString::to_string);
        }
        client.get(&["healthz"], &[]).await?;
        Ok(client)
    }

    fn of_folder(config: &Config) -> Result<Self, Failure> {
        let Some(address) = address::read(&config.data_dir).filter(|_| is_in_use(&config.data_dir)) else {
            let folder = config.data_dir.display();
            let hint = format!(
                "no server is using the data folder {folder}; start one with: tokenrail serve (or pass the address of \
                 a running server with --url or --listen)"
            );
            return Err(Failure::new(Exit::Unreachable, hint));
        };
        let client = Self::with(url_of(address)?, folder_token(config)?, TokenOf::DataFolder)?;
        Ok(Self { data_folder: Some(config.data_dir.clone()), ..client })
    }

    /// The data folder that the server uses, if it has accepted a request and its folder is known.
    pub(crate) fn data_folder(&self) -> Option<&Path> {
        self.data_folder.as_deref()
    }

    /// A command line for this server.
    pub(crate) fn command(&self, line: &str) -> String {
        format!("tokenrail {line}{}", self.repeat)
    }

    /// The URL of the page, or of an agent's view of it, with a login code that works once. The code is behind the `#`,
    /// because browsers do not send that part.
    pub(crate) async fn page_url(&self, agent: Option<&str>) -> Result<String, Failure> {
        let view = agent.map(|id| format!("agents/{id}")).unwrap_or_default();
        let base = self.public.as_deref().unwrap_or(self.base());
        if self.token.is_none() {
            return Ok(format!("{base}/{view}"));
        }
        let login: LoginCode =
            self.send(self.request(Method::POST, &["api", "session", "codes"], &[])?).await?.json().await?;
        Ok(format!("{base}/{view}#code={}", login.code))
    }

    pub(crate) fn base(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    /// Requests a path, which is given by its segments. Segments and parameters may contain any text that a user has
    /// typed.
    pub(crate) async fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Response, Failure> {
        self.send(self.request(Method::GET, path, query)?).await
    }

    pub(crate) async fn post(&self, path: &[&str], body: &Value) -> Result<Value, Failure> {
        Ok(self.send(self.request(Method::POST, path, &[])?.json(body)).await?.json().await?)
    }

    pub(crate) async fn patch(&self, path: &[&str], body: &Value) -> Result<Value, Failure> {
        Ok(self.send(self.request(Method::PATCH, path, &[])?.json(body)).await?.json().await?)
    }

    pub(crate) async fn delete(&self, path: &[&str], query: &[(&str, &str)]) -> Result<(), Failure> {
        self.send(self.request(Method::DELETE, path, query)?).await.map(drop)
    }

    /// Sends JSON as it is read.
    pub(crate) async fn upload(&self, path: &[&str], body: Body) -> Result<Value, Failure> {
        let request = self.request(Method::POST, path, &[])?.header("content-type", "application/json");
        // The server limits the time of an import.
        Ok(self.check(request.body(body).send().await).await?.json().await?)
    }

    /// Opens a stream of events after `since`.
    pub(crate) async fn events(&self, id: &str, since: u64, keep: bool) -> Result<Response, Failure> {
        let query = [("since", since.to_string()), ("keep", keep.to_string())];
        let query = query.each_ref().map(|(name, value)| (*name, value.as_str()));
        let request = self.request(Method::GET, &["api", "agents", id, "events"], &query)?;
        self.send(request.header("accept", "text/event-stream")).await
    }

    fn request(
        &self,
        method: Method,
        path: &[&str],
        query: &[(&str, &str)],
    ) -> Result<RequestBuilder, Failure> {
        if path.iter().any(|segment| matches!(*segment, "" | "." | "..")) {
            // These have a special meaning in a URL, however they are escaped.
            return Err(Failure::new(Exit::Failed, "no such agent (not_found)").coded("not_found"));
        }
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            // A proxy may serve Tokenrail below a path.
            segments.pop_if_empty().extend(path);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.request(method, url);
        Ok(match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        })
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        self.send_within(ANSWER_TIMEOUT, request).await
    }

    async fn send_within(&self, limit: Duration, request: RequestBuilder) -> Result<Response, Failure> {
        let Ok(answer) = timeout(limit, request.send()).await else {
            let text = format!("the server at {} did not respond within {limit:?}; see its log", self.base());
            return Err(Failure::new(Exit::Unreachable, text));
        };
        self.check(answer).await
    }

    /// Turns everything but a success into an error.
    async fn check(&self, answer: reqwest::Result<Response>) -> Result<Response, Failure> {
        let answer = answer.map_err(|error| {
            let (base, cause) = (self.base(), root_cause(&error));
            let advice = match self.token_of {
                TokenOf::DataFolder => "; start one with: tokenrail serve",
                TokenOf::Environment => "",
            };
            Failure::new(Exit::Unreachable, format!("cannot reach a server at {base}{advice} ({cause})"))
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        if status == StatusCode::UNAUTHORIZED {
            return Err(Failure::new(Exit::Failed, self.unauthenticated()).coded("unauthenticated"));
        }
        if status.is_redirection() {
            let to =
                answer.headers().get(header::LOCATION).and_then(|to| to.to_str().ok()).unwrap_or_default();
            let text = format!(
                "the server at {} answered with a redirect to {to:?}, which is not followed; pass the final URL of the server with --url",
                self.base()
            );
            return Err(Failure::new(Exit::Failed, text));
        }
        let Ok(problem) = answer.json::<Problem>().await else {
            let text = format!(
                "{} answered {status}, but not in the form of a Tokenrail error; check that the address is that of a \
                 Tokenrail server",
                self.base()
            );
            return Err(Failure::new(Exit::Failed, text));
        };
        let code = problem.code.clone();
        Err(Failure::new(Exit::Failed, problem.sentence()).coded(code))
    }

    /// What to do if the server does not accept the token.
    fn unauthenticated(&self) -> String {
        let base = self.base();
        match (self.token_of, &self.token) {
            (TokenOf::DataFolder, _) => format!(
                "the server at {base} rejected the token; pass the data folder of that server with --data-dir, or its \
                 token in {TOKEN_VARIABLE}"
            ),
            (TokenOf::Environment, Some(_)) => {
                format!("the server at {base} rejected the token; check {TOKEN_VARIABLE}")
            }
            (TokenOf::Environment, None) => {
                format!("the server at {base} requires a token; set {TOKEN_VARIABLE}")
            }
        }
    }
}

impl Problem {
    /// The error in one line. If the server names fields, their messages are more specific than the rest.
    fn sentence(self) -> String {
        let Self { title, detail, code, errors } = self;
        if errors.is_empty() {
            let sentence = if detail.is_empty() { title } else { detail };
            return format!("{sentence} ({code})");
        }
        let errors = errors.iter().map(|FieldProblem { pointer, parameter, detail }| {
            match format!("{}{parameter}", pointer.trim_start_matches('/')) {
                place if place.is_empty() => detail.clone(),
                place => format!("{place}: {detail}"),
            }
        });
        format!("{} ({code})", errors.collect::<Vec<_>>().join("; "))
    }
}

/// The last cause of an error, which is the most specific one.
fn root_cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The token of the data folder. `None` if no server has ever run on it, or if authentication is disabled.
fn folder_token(config: &Config) -> Result<Option<String>, TokenError> {
    if config.insecure_no_auth {
        return Ok(None);
    }
    match token::read(&config.data_dir) {
        Ok(token) => Ok(Some(token)),
        Err(TokenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn url_of(address: SocketAddr) -> Result<Url, Failure> {
    Ok(Url::parse(&format!("http://{}", address::reachable(address)))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_does_not_respond_counts_as_unreachable() {
        crate::install_crypto();
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let base = url_of(silent.local_addr().unwrap()).unwrap();
        let client = Client::with(base, None, TokenOf::Environment).unwrap();
        let request = client.request(Method::GET, &["healthz"], &[]).unwrap();
        let failure = client.send_within(Duration::from_millis(50), request).await.unwrap_err();
        assert_eq!(failure.exit, Exit::Unreachable);
        assert!(failure.to_string().contains("did not respond within 50ms;"), "{failure}");
    }
}
