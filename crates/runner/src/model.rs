//! An agent that is a model behind an HTTP API: one request, one answer, streamed.
//!
//! The request is made by a process of its own, this same program as `tokenrail model <API>`, under the same
//! supervisor as every program: so an answer goes on while no server runs, and a cancel closes the connection at
//! once. It is told what to ask by its standard input, and the key by its environment. What it prints is one line
//! for each event of the answer, as the API sent it, and lines of its own, which alone begin with `{"tokenrail":"`.
//!
//! * [`order`]: what the process is told
//! * [`body`]: a request in the words of each API
//! * [`ask`]: what happens in the process
//! * [`report`]: its own lines

mod ask;
mod body;
mod order;
mod report;
mod retry_after;

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokenrail_ports::{Adoption, IAgentRun, IAgentRunner, Probe, RunnerError, TurnOrder};

pub use self::ask::ask_model;
use self::order::{ModelOrder, Past};
use crate::{ProcessConfig, ProcessLimits, ProcessRunner, RunWatcher, SupervisorProgram};

/// What the process finds the certificates of others by, where they are not in the usual place.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_DIR", "SSL_CERT_FILE"];

/// The APIs that can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelApi {
    /// Messages of Anthropic.
    Anthropic,
    /// Chat Completions of `OpenAI`, which many other servers speak.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// Responses of `OpenAI`.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
}

impl ModelApi {
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAiChat, Self::OpenAiResponses];

    /// The name of its format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
        }
    }

    /// The inverse of [`ModelApi::name`].
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name)
    }

    /// Where its maker offers it, and the usual name of the variable with the key for it.
    pub fn official(self) -> (&'static str, &'static str) {
        match self {
            Self::Anthropic => ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
            Self::OpenAiChat | Self::OpenAiResponses => ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        }
    }
}

/// One kind of model behind an HTTP API.
#[derive(Debug, Clone)]
pub struct ModelConfig {
    pub api: ModelApi,
    /// Where it is: without `/v1/messages` for [`ModelApi::Anthropic`], without what comes behind `/v1` for the
    /// others.
    pub base_url: String,
    /// The variable of the server's environment that holds the key; none where no key is needed.
    pub api_key_env: Option<String>,
    /// The model where an order names none.
    pub model: Option<String>,
    /// What the model is told before everything else.
    pub system: Option<String>,
    /// The longest answer, in tokens.
    pub max_tokens: Option<u32>,
    /// More fields of the request, as its API has them.
    pub parameters: Map<String, Value>,
    pub limits: ModelLimits,
    /// How the process is run that asks.
    pub process: ModelProcess,
}

/// How the process is run that asks.
#[derive(Debug, Clone)]
pub struct ModelProcess {
    /// This program itself: `<program> model <API>` asks.
    pub program: PathBuf,
    pub supervisor: SupervisorProgram,
    /// The folder of the run folders.
    pub runs: PathBuf,
    pub limits: ProcessLimits,
}

/// The bounds of a request to a model's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ModelLimits {
    /// How long it may take to connect.
    pub connect_timeout_ms: u64,
    /// How long the API may be silent, also before its answer begins; a keep-alive is no silence.
    pub idle_timeout_ms: u64,
    /// The longest event; a longer one ends the answer.
    pub event_bytes: usize,
    /// How much is kept of an answer that says what was wrong.
    pub error_bytes: usize,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self {
            connect_timeout_ms: 10_000,
            idle_timeout_ms: 600_000,
            event_bytes: 16 << 20,
            error_bytes: 4 << 10,
        }
    }
}

/// Asks a model's API, each turn with the history that the order brings.
pub struct ModelRunner {
    config: ModelConfig,
    process: ProcessRunner,
}

impl ModelRunner {
    /// The watcher is that of all runners of the server.
    pub fn new(config: ModelConfig, watcher: RunWatcher) -> Result<Self, RunnerError> {
        let ModelProcess { program, supervisor, runs, limits } = config.process.clone();
        let certificates = CERTIFICATES.iter().map(|name| (*name).to_owned());
        let process = ProcessConfig {
            program: program.to_string_lossy().into_owned(),
            supervisor,
            runs,
            args: vec!["model".to_owned(), config.api.name().to_owned()],
            resume_args: Vec::new(),
            model_args: Vec::new(),
            env: BTreeMap::new(),
            pass_env: config.api_key_env.iter().cloned().chain(certificates).collect(),
            interrupt: false,
            converse: None,
            limits,
        };
        Ok(Self { config, process: ProcessRunner::new(process, watcher)? })
    }

    /// The name of the key's variable, where it is needed and not there.
    fn missing_key(&self) -> Option<&str> {
        let variable = self.config.api_key_env.as_deref()?;
        env::var_os(variable).is_none_or(|key| key.is_empty()).then_some(variable)
    }

    /// What the process is told.
    fn order(&self, order: &TurnOrder) -> Result<ModelOrder, RunnerError> {
        if let Some(variable) = self.missing_key() {
            return Err(RunnerError::KeyMissing { variable: variable.to_owned() });
        }
        let ModelConfig { base_url, api_key_env, system, max_tokens, parameters, limits, .. } =
            self.config.clone();
        let model = order.model.clone().or_else(|| self.config.model.clone());
        let past = order
            .history
            .iter()
            .map(|turn| Past { user: turn.prompt.clone(), assistant: turn.answer.clone() });
        Ok(ModelOrder {
            base_url,
            api_key_env,
            model: model.ok_or(RunnerError::ModelMissing)?,
            system,
            history: past.collect(),
            prompt: order.prompt.clone(),
            max_tokens,
            parameters,
            limits,
        })
    }
}

#[async_trait]
impl IAgentRunner for ModelRunner {
    async fn start(&self, order: &TurnOrder) -> Result<Box<dyn IAgentRun>, RunnerError> {
        let told = serde_json::to_string(&self.order(order)?).map_err(std::io::Error::other)?;
        let of_process = TurnOrder {
            agent: order.agent,
            turn: order.turn,
            prompt: told,
            model: None,
            cwd: order.cwd.clone(),
            session: None,
            options: None,
            history: Vec::new(),
        };
        self.process.start(&of_process).await
    }

    async fn adopt(&self, order: &TurnOrder, committed: u64) -> Result<Adoption, RunnerError> {
        self.process.adopt(order, committed).await
    }

    /// Nobody is asked: that would cost something, or tell somebody that we are here.
    async fn probe(&self) -> Probe {
        let base_url = &self.config.base_url;
        let problem = self.missing_key().map(|variable| {
            format!("the environment variable {variable} is not set; set it to the API key for {base_url} and restart the server")
        });
        Probe { program: Some(base_url.clone()), problem, ..Probe::default() }
    }

    fn wants_history(&self) -> bool {
        true
    }
}
