//! The configuration as a file that has the same effect, but without secrets.

use serde_json::Value as Json;
use tokenrail_parser::JsonlMapping;
use tokenrail_runner::{ModelSettings, Protocol, Unanswered};
use toml::{Table, Value};

use super::agents::ConverseBlock;
use super::storage::{LIMITS_OF_POSTGRES, LIMITS_OF_SQLITE};
use super::{
    AgentConfig, ClusterConfig, Config, PasswordSource, PostgresBlock, ProcessBlock, ProxyBlock,
    RecordingSource, ReplayBlock, RunnerConfig, StorageConfig, SyncMode,
};

/// What stands in place of a value that may be a secret.
const HIDDEN: &str = "(hidden)";

impl Config {
    /// All settings, with the defaults. Values of `env`, strings in `parameters` and credentials in URLs are hidden.
    pub(crate) fn to_table(&self) -> Table {
        let server = table([
            ("listen", Some(self.listen.to_string().into())),
            ("data_dir", Some(self.data_dir.display().to_string().into())),
            ("public_url", self.public_url.as_ref().map(|url| url.to_string().into())),
            ("tls_cert", self.tls.as_ref().map(|tls| tls.certificate.display().to_string().into())),
            ("tls_key", self.tls.as_ref().map(|tls| tls.key.display().to_string().into())),
            ("allowed_hosts", Some(list(&self.allowed_hosts))),
            ("allowed_origins", Some(list(&self.allowed_origins))),
            ("default_agent", self.default_agent.clone().map(Value::from)),
        ]);
        let mut table = Table::from_iter([("server".to_owned(), Value::Table(server))]);
        table.insert("storage".to_owned(), Value::Table(of_storage(&self.storage)));
        if let StorageConfig::Postgres(_) = &self.storage {
            table.insert("cluster".to_owned(), Value::Table(of_cluster(&self.cluster)));
        }
        // The limits are numbers, so their text is always valid.
        let mut limits = self.limits.to_toml().parse::<Table>().unwrap_or_default();
        if let Some(Value::Table(limits)) = limits.get_mut("limits") {
            let others = match &self.storage {
                StorageConfig::Sqlite { .. } => &LIMITS_OF_POSTGRES[..],
                StorageConfig::Postgres(_) => &LIMITS_OF_SQLITE[..],
            };
            limits.retain(|limit, _| !others.contains(&limit));
        }
        table.extend(limits);
        let agents = self.agents.iter().map(|(name, agent)| (name.clone(), Value::Table(of_agent(agent))));
        table.insert("agents".to_owned(), Value::Table(agents.collect()));
        table
    }
}

fn list<T: AsRef<str>>(texts: &[T]) -> Value {
    texts.iter().map(|text| Value::from(text.as_ref())).collect::<Vec<_>>().into()
}

/// The entries that have a value.
fn table<const N: usize>(entries: [(&str, Option<Value>); N]) -> Table {
    entries.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn of_storage(storage: &StorageConfig) -> Table {
    match storage {
        StorageConfig::Sqlite { synchronous } => {
            let synchronous = match synchronous {
                SyncMode::Full => "full",
                SyncMode::Normal => "normal",
            };
            table([("synchronous", Some(synchronous.into()))])
        }
        // The URL was refused if it contained a password.
        StorageConfig::Postgres(PostgresBlock { url, password, durability }) => {
            let file = match password {
                PasswordSource::File(path) => Some(path.display().to_string().into()),
                PasswordSource::None | PasswordSource::Variable(_) => None,
            };
            let durability = durability.as_str().into();
            table([
                ("url", Some(url.clone().into())),
                ("password_file", file),
                ("durability", Some(durability)),
            ])
        }
    }
}

fn of_cluster(cluster: &ClusterConfig) -> Table {
    let ClusterConfig { name, beat_s, lost_after_s, away_s, on_stop, failover_keep_s, failover_keep_bytes } =
        cluster;
    // The times are at most ten years.
    let seconds = |seconds: u64| Some(Value::Integer(seconds as i64));
    table([
        ("name", Some(name.clone().into())),
        ("beat_s", seconds(*beat_s)),
        ("lost_after_s", seconds(*lost_after_s)),
        ("away_s", seconds(*away_s)),
        ("on_stop", Some(on_stop.as_str().into())),
        ("failover_keep_s", seconds(*failover_keep_s)),
        ("failover_keep_bytes", Some(Value::Integer(*failover_keep_bytes as i64))),
    ])
}

fn of_agent(agent: &AgentConfig) -> Table {
    let AgentConfig { format, jsonl, runner, cwd_roots } = agent;
    let roots: Vec<String> = cwd_roots.iter().map(|root| root.display().to_string()).collect();
    let mut shown = match runner {
        RunnerConfig::Process(process) => of_process(process),
        RunnerConfig::Http(model) => of_model(model),
        RunnerConfig::Proxy(ProxyBlock { url }) => {
            table([("runner", Some("proxy".into())), ("url", Some(without_login(url).into()))])
        }
        RunnerConfig::Replay(ReplayBlock { transcript, speed }) => {
            let transcript = match transcript {
                RecordingSource::BuiltIn => "builtin".to_owned(),
                RecordingSource::File(path) => path.display().to_string(),
            };
            let (transcript, speed) = (Some(transcript.into()), Some((*speed).into()));
            table([("runner", Some("replay".into())), ("transcript", transcript), ("speed", speed)])
        }
    };
    shown.insert("format".to_owned(), format.name.into());
    shown.insert("cwd_roots".to_owned(), list(&roots));
    if format.name == "jsonl" {
        shown.insert("jsonl".to_owned(), Value::Table(of_mapping(jsonl)));
    }
    shown
}

fn of_process(process: &ProcessBlock) -> Table {
    let ProcessBlock { program, args, resume_args, model_args, env, pass_env, interrupt, converse } = process;
    let is_acp = converse.is_some_and(|converse| converse.protocol == Protocol::Acp);
    let env: Table = env.keys().map(|name| (name.clone(), HIDDEN.into())).collect();
    let mut shown = table([
        ("runner", Some(if is_acp { "acp" } else { "process" }.into())),
        ("program", Some(program.clone().into())),
        ("args", Some(list(args))),
        ("resume_args", Some(list(resume_args))),
        ("model_args", Some(list(model_args))),
        ("env", Some(Value::Table(env))),
        ("pass_env", Some(list(pass_env))),
        ("interrupt", Some((*interrupt).into())),
    ]);
    if let Some(ConverseBlock { protocol, permission_timeout_s, permission_default, files, rest_s }) =
        converse
    {
        let unanswered = match permission_default {
            Unanswered::Reject => "reject",
            Unanswered::Allow => "allow",
        };
        shown.extend(table([
            ("permission_timeout_s", Some((*permission_timeout_s as i64).into())),
            ("permission_default", Some(unanswered.into())),
            ("files", is_acp.then(|| (*files).into())),
            ("rest_s", protocol.can_be_idle().then(|| (*rest_s as i64).into())),
        ]));
    }
    shown
}

fn of_model(model: &ModelSettings) -> Table {
    // The format of the agent type says which API it is.
    let ModelSettings { api: _, base_url, api_key_env, model, system, max_tokens, parameters } = model;
    let parameters: Table =
        parameters.iter().map(|(name, value)| (name.clone(), without_texts(value))).collect();
    table([
        ("runner", Some("http".into())),
        ("base_url", Some(base_url.clone().into())),
        ("api_key_env", api_key_env.clone().map(Value::from)),
        ("model", model.clone().map(Value::from)),
        ("system", system.clone().map(Value::from)),
        ("max_tokens", max_tokens.map(|most| i64::from(most).into())),
        ("parameters", Some(Value::Table(parameters))),
    ])
}

/// Numbers and flags are no secrets. Tools, for example, may contain the keys of other services.
fn without_texts(value: &Json) -> Value {
    match value {
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(number)) => number.into(),
            (None, None) => HIDDEN.into(),
        },
        Json::Null | Json::String(_) | Json::Array(_) | Json::Object(_) => HIDDEN.into(),
    }
}

/// A URL without a user name, a password and a query.
fn without_login(url: &str) -> String {
    let Ok(mut url) = reqwest::Url::parse(url) else { return HIDDEN.to_owned() };
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() {
        // A URL with a host can have a user name, so this cannot fail.
        let _ = (url.set_username("hidden"), url.set_password(None));
        url.set_query(None);
    }
    url.to_string()
}

fn of_mapping(mapping: &JsonlMapping) -> Table {
    let JsonlMapping {
        kind,
        session,
        text,
        call,
        tool,
        input,
        output,
        result,
        error,
        usage,
        deltas,
        reasoning,
        messages,
        tool_calls,
        tool_results,
        errors,
        results,
    } = mapping;
    let text_of = |text: &String| Some(text.clone().into());
    table([
        ("kind", text_of(kind)),
        ("session", text_of(session)),
        ("text", text_of(text)),
        ("call", text_of(call)),
        ("tool", text_of(tool)),
        ("input", text_of(input)),
        ("output", text_of(output)),
        ("result", text_of(result)),
        ("error", text_of(error)),
        ("usage", text_of(usage)),
        ("deltas", Some(list(deltas))),
        ("reasoning", Some(list(reasoning))),
        ("messages", Some(list(messages))),
        ("tool_calls", Some(list(tool_calls))),
        ("tool_results", Some(list(tool_results))),
        ("errors", Some(list(errors))),
        ("results", Some(list(results))),
    ])
}
