//! The configuration: defaults, then the file, then the environment, then the flags.

mod agents;
mod cluster;
mod layers;
mod limits;
mod problem;
mod public_url;
mod shown;
mod source;
mod storage;
mod target;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub(crate) use agents::{AgentConfig, ProcessBlock, ProxyBlock, RecordingSource, ReplayBlock, RunnerConfig};
pub(crate) use cluster::ClusterConfig;
pub(crate) use layers::{user_file, usual_files};
pub(crate) use limits::LimitsConfig;
pub use problem::ConfigError;
pub(crate) use public_url::PublicUrl;
use source::Source;
pub(crate) use storage::{DurabilityMode, PasswordSource, PostgresBlock, StorageConfig, SyncMode};
pub(crate) use target::TOKEN_VARIABLE;
pub use target::{EnvToken, Given, Target};

/// The files of a TLS certificate, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TlsConfig {
    /// The certificate, followed by the intermediate certificates.
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// The configuration of one server.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Config {
    pub listen: SocketAddr,
    /// The server that commands connect to.
    pub target: Target,
    /// The token for that server, if the environment has one.
    pub token: Option<EnvToken>,
    /// The folder of all data: database, token, spools, folders of agents.
    pub data_dir: PathBuf,
    /// Authorities (`host` or `host:port`) that a request may name, in addition to the loopback ones.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages that may send requests, in addition to the server's own.
    pub allowed_origins: Vec<String>,
    /// The agent type of a launch that does not name one.
    pub default_agent: Option<String>,
    /// Where clients reach the server through a proxy. `None` if they reach it directly.
    pub(crate) public_url: Option<PublicUrl>,
    /// With TLS, the server accepts no unencrypted connections at `listen`.
    pub(crate) tls: Option<TlsConfig>,
    pub(crate) storage: StorageConfig,
    pub(crate) cluster: ClusterConfig,
    pub limits: LimitsConfig,
    pub agents: BTreeMap<String, AgentConfig>,
    /// Built-in types by the names that they had in earlier versions.
    pub former_agents: BTreeMap<String, AgentConfig>,
    /// No token is required. Allowed on a loopback address only.
    pub insecure_no_auth: bool,
    /// Whether `/ws/echo` and `/test/panic` exist: for tests only.
    pub test_routes: bool,
    /// False if run folders are polled instead: for tests only.
    pub inotify: bool,
    /// For tests: the schema of the database is that which the next release could have.
    pub next_schema: bool,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    /// The flags that another command needs to reach the same server, as a shell reads them. Each begins with a space.
    pub(crate) repeat: String,
}

/// The command-line flags. They override all other layers.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    pub config: Option<PathBuf>,
    pub data_dir: Option<PathBuf>,
    pub listen: Option<Given>,
    pub url: Option<Given>,
    pub insecure_no_auth: bool,
}

impl Config {
    /// Reads all layers. `env` is the environment of the process.
    ///
    /// # Errors
    /// [`ConfigError`] for the first wrong key or value, with its place and what to write instead.
    pub fn load(flags: &Flags, env: &BTreeMap<String, String>) -> Result<Self, ConfigError> {
        let home = env.get("HOME").map(PathBuf::from);
        let file = layers::find_file(flags.config.as_deref(), env);
        let (tables, source) = layers::read(file.as_deref(), env)?;
        let agents = agents::all(tables.agents, home.as_deref(), &source)?;
        if let Some((limit, why)) = tables.limits.wrong() {
            return Err(source.wrong(&["limits", limit], why));
        }
        let server = tables.server;
        server.check(&source)?;
        let listen = listen(flags, server.listen.as_deref(), &source)?;
        let data_dir = match flags.data_dir.clone().or(server.data_dir.map(PathBuf::from)) {
            Some(dir) => absolute(&expand_home(&dir, home.as_deref())),
            None => default_data_dir(env)?,
        };
        if flags.insecure_no_auth && !listen.ip().is_loopback() {
            return Err(ConfigError::InsecureListen(listen));
        }
        let public_url = server.public_url.map(|url| url.parse()).transpose();
        let public_url = public_url
            .map_err(|why| source.wrong(&["server", "public_url"], format!("server.public_url: {why}")))?;
        let tls = tls_files((server.tls_cert, server.tls_key), home.as_deref(), &source)?;
        let former_agents = agents::former(&agents);
        let default_agent = server.default_agent.unwrap_or_else(|| "claude-code".to_owned());
        if !agents.contains_key(&default_agent) && !former_agents.contains_key(&default_agent) {
            let message = agents::unknown_default(&default_agent, &agents);
            return Err(source.wrong(&["server", "default_agent"], message));
        }
        let storage = tables.storage.check(&source, home.as_deref())?;
        let cluster = tables.cluster.check(&source, &storage)?;
        storage::keep_password(&storage, &agents, &source)?;
        Ok(Self {
            listen,
            target: Target::of(flags, listen)?,
            token: EnvToken::of(env)?,
            data_dir,
            allowed_hosts: server.allowed_hosts,
            allowed_origins: server.allowed_origins,
            default_agent: Some(default_agent),
            public_url,
            tls,
            storage,
            cluster,
            limits: tables.limits,
            agents,
            former_agents,
            insecure_no_auth: flags.insecure_no_auth,
            test_routes: false,
            inotify: true,
            next_schema: false,
            file,
            repeat: String::new(),
        })
    }
}

impl Config {
    /// The path below which clients reach the server. Empty for the root.
    pub(crate) fn base_path(&self) -> &str {
        self.public_url.as_ref().map_or("", PublicUrl::path)
    }

    /// Valid settings that may be mistakes: agent types, and a sentence about each.
    pub(crate) fn warnings(&self) -> Vec<(&str, String)> {
        let roots =
            self.agents.iter().flat_map(|(name, agent)| agent.cwd_roots.iter().map(move |root| (name, root)));
        // The folder may appear later, for example when it is mounted.
        let missing = roots.filter(|(_, root)| !root.is_dir());
        let missing = missing.map(|(name, root)| {
            (
                name.as_str(),
                format!(
                    "cwd_roots: {} does not exist or is not a folder; agents cannot work there",
                    root.display()
                ),
            )
        });
        let in_clear = self.agents.iter().filter(|(_, agent)| match &agent.runner {
            RunnerConfig::Http(model) => agents::sends_key_in_clear(model),
            _ => false,
        });
        let in_clear = in_clear.map(|(name, _)| {
            (name.as_str(), "base_url: http sends the API key unencrypted; use https".to_owned())
        });
        missing.chain(in_clear).collect()
    }
}

/// The files of the certificate: both or none.
fn tls_files(
    files: (Option<PathBuf>, Option<PathBuf>),
    home: Option<&Path>,
    source: &Source<'_>,
) -> Result<Option<TlsConfig>, ConfigError> {
    match files {
        (Some(certificate), Some(key)) => Ok(Some(TlsConfig {
            certificate: absolute(&expand_home(&certificate, home)),
            key: absolute(&expand_home(&key, home)),
        })),
        (None, None) => Ok(None),
        (one, _) => {
            let (set, missing) =
                if one.is_some() { ("tls_cert", "tls_key") } else { ("tls_key", "tls_cert") };
            let message = format!("server.{set}: TLS needs server.{missing} too");
            Err(source.wrong(&["server", set], message))
        }
    }
}

/// Where the server listens by default.
pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:7117";

fn listen(flags: &Flags, setting: Option<&str>, source: &Source<'_>) -> Result<SocketAddr, ConfigError> {
    let wrong = |text: &str| format!("invalid address {text:?}; expected a form like {DEFAULT_LISTEN}");
    let text = setting.unwrap_or(DEFAULT_LISTEN);
    // An invalid setting is an error even if a flag overrides it.
    let listen = text
        .parse()
        .map_err(|_| source.wrong(&["server", "listen"], format!("server.listen: {}", wrong(text))))?;
    match &flags.listen {
        Some(Given { text, by }) => {
            text.parse().map_err(|_| ConfigError::Setting(format!("{by}: {}", wrong(text))))
        }
        None => Ok(listen),
    }
}

fn default_data_dir(env: &BTreeMap<String, String>) -> Result<PathBuf, ConfigError> {
    if let Some(dir) = env.get("XDG_DATA_HOME").filter(|dir| Path::new(dir).is_absolute()) {
        return Ok(Path::new(dir).join("tokenrail"));
    }
    match env.get("HOME").filter(|home| !home.is_empty()) {
        Some(home) => Ok(Path::new(home).join(".local/share/tokenrail")),
        None => Err(ConfigError::NoDataDir),
    }
}

fn expand_home(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_owned(),
    }
}

/// Resolves relative folders of flags and configuration against the folder in which the program was started.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests;
