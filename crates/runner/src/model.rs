//! An agent that is a model behind an HTTP API: each turn is one request, with a streamed answer.
//!
//! A separate process sends the request: this same program as `tokenrail model <API>`, under the same supervisor as
//! every agent program. So an answer continues while no server runs, and a cancel closes the connection at once. The
//! process receives the request on standard input, and the key in its environment. It prints one line for each event
//! of the answer, as the API sent it, and added lines, which alone begin with `{"tokenrail":"`.
//!
//! * [`order`]: the standard input of the process
//! * [`body`]: the request in the format of each API
//! * [`ask`], [`retry_after`]: what the process does; the time after which an API wants to be asked again
//! * [`report`]: what it prints

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

/// The variables that locate the certificates of certificate authorities, if these are not in the usual place.
const CERTIFICATES: [&str; 2] = ["SSL_CERT_DIR", "SSL_CERT_FILE"];

/// The supported APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelApi {
    /// Anthropic's Messages API.
    Anthropic,
    /// `OpenAI`'s Chat Completions API, which many other servers implement.
    #[serde(rename = "openai-chat")]
    OpenAiChat,
    /// `OpenAI`'s Responses API.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
}

impl ModelApi {
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::OpenAiChat, Self::OpenAiResponses];

    /// The name of its event format.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAiChat => "openai-chat",
            Self::OpenAiResponses => "openai-responses",
        }
    }

    /// The inverse of [`ModelApi::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.name() == name)
    }
}

/// A model behind an API, and how to ask it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSettings {
    pub api: ModelApi,
    /// The base URL: without `/v1/messages` for [`ModelApi::Anthropic`], without what follows `/v1` for the others.
    pub base_url: String,
    /// The variable of the server's environment that holds the key. `None` if no key is needed.
    pub api_key_env: Option<String>,
    /// The model of a turn that does not name one.
    pub model: Option<String>,
    /// The system prompt.
    pub system: Option<String>,
    /// The maximum length of an answer, in tokens.
    pub max_tokens: Option<u32>,
    /// Additional fields of the request, as the API defines them.
    pub parameters: Map<String, Value>,
}

impl ModelSettings {
    /// The vendor's own address of an API, with the usual variable for the key.
    pub fn official(api: ModelApi) -> Self {
        let (base_url, api_key_env) = match api {
            ModelApi::Anthropic => ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
            ModelApi::OpenAiChat | ModelApi::OpenAiResponses => {
                ("https://api.openai.com/v1", "OPENAI_API_KEY")
            }
        };
        Self {
            api,
            base_url: base_url.to_owned(),
            api_key_env: Some(api_key_env.to_owned()),
            model: None,
            system: None,
            max_tokens: None,
            parameters: Map::new(),
        }
    }
}

/// One agent type that uses a model API.
#[derive(Debug, Clone)]
pub struct ModelConfig {
    pub settings: ModelSettings,
    pub limits: ModelLimits,
    /// How to run the process that sends the request.
    pub process: ModelProcess,
}

/// How to run the process that sends the request.
#[derive(Debug, Clone)]
pub struct ModelProcess {
    /// This program itself: `<program> model <API>` sends the request.
    pub program: PathBuf,
    pub supervisor: SupervisorProgram,
    /// The folder that contains the run folders.
    pub runs: PathBuf,
    pub limits: ProcessLimits,
}

/// The limits of a request to a model API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ModelLimits {
    /// How long connecting may take. Also how long reading the body of an error response may take.
    pub connect_timeout_ms: u64,
    /// How long the API may send nothing, also before its answer begins. A keep-alive counts as data.
    pub idle_timeout_ms: u64,
    /// The maximum length of an event. A longer event ends the answer.
    pub event_bytes: usize,
    /// How many bytes of an error response are kept.
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

/// Sends each turn to a model API, with the history that the order contains.
pub struct ModelRunner {
    config: ModelConfig,
    process: ProcessRunner,
}

impl ModelRunner {
    /// All runners of the server share one watcher.
    pub fn new(config: ModelConfig, watcher: RunWatcher) -> Result<Self, RunnerError> {
        let ModelProcess { program, supervisor, runs, limits } = config.process.clone();
        let certificates = CERTIFICATES.iter().map(|name| (*name).to_owned());
        let process = ProcessConfig {
            program: program.to_string_lossy().into_owned(),
            supervisor,
            runs,
            args: vec!["model".to_owned(), config.settings.api.name().to_owned()],
            resume_args: Vec::new(),
            model_args: Vec::new(),
            env: BTreeMap::new(),
            pass_env: config.settings.api_key_env.iter().cloned().chain(certificates).collect(),
            interrupt: false,
            converse: None,
            limits,
        };
        Ok(Self { config, process: ProcessRunner::new(process, watcher)? })
    }

    /// The name of the key's variable, if a key is needed and the variable is not set or empty.
    fn missing_key(&self) -> Option<&str> {
        let variable = self.config.settings.api_key_env.as_deref()?;
        env::var_os(variable).is_none_or(|key| key.is_empty()).then_some(variable)
    }

    /// The standard input of the process.
    fn order(&self, order: &TurnOrder) -> Result<ModelOrder, RunnerError> {
        if let Some(variable) = self.missing_key() {
            return Err(RunnerError::KeyMissing { variable: variable.to_owned() });
        }
        let ModelConfig { settings, limits, process: _ } = self.config.clone();
        let ModelSettings { api: _, base_url, api_key_env, model, system, max_tokens, parameters } = settings;
        let model = order.model.clone().or(model);
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
            run: order.run,
            prompt: told,
            model: None,
            cwd: order.cwd.clone(),
            session: None,
            options: None,
            images: Vec::new(),
            history: Vec::new(),
        };
        self.process.start(&of_process).await
    }

    async fn adopt(&self, order: &TurnOrder, committed: u64) -> Result<Adoption, RunnerError> {
        self.process.adopt(order, committed).await
    }

    /// Sends no request, because it could cost money and would reveal that this server exists.
    async fn probe(&self) -> Probe {
        let base_url = &self.config.settings.base_url;
        let problem = self.missing_key().map(|variable| {
            format!(
                "the environment variable {variable} is not set; set it to the API key for {base_url} and restart \
                 the server"
            )
        });
        Probe { program: Some(base_url.clone()), problem, ..Probe::default() }
    }

    fn wants_history(&self) -> bool {
        true
    }

    /// Each request has the whole conversation.
    fn needs_home(&self) -> bool {
        false
    }
}
