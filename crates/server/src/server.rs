//! Starts and stops everything.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::ServerHandle;
use actix_web::web::ServiceConfig;
use tokenrail_application::{AfterLastTurn, AgentService, AtStop, Fence, Next, Refusal};
use tokenrail_ports::{StoreError, is_disk_full};
use tokenrail_presentation::{Api, Forwarded, MissingPage, PresentationConfig, page, session_cookie};
use tokenrail_web::BasePath;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::address::{self, Scheme};
use crate::clock::SystemRandom;
use crate::compose::limits::{all_limits, listen_limits, presentation_limits, socket_limits};
use crate::compose::{self, ComposeError};
use crate::config::Config;
use crate::store::{OpenStoreError, Store};
use crate::tls::{self, TlsError, TlsFront};
use crate::token::{self, TokenError};

/// A running server.
pub struct Server {
    config: Config,
    address: SocketAddr,
    /// Where the server accepts unencrypted connections: a loopback address if TLS is in front.
    local: SocketAddr,
    token: Option<String>,
    api: Api,
    service: AgentService,
    store: Store,
    http: ServerHandle,
    serving: JoinHandle<io::Result<()>>,
    /// Accepts connections as long as it is there.
    _tls: Option<TlsFront>,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] OpenStoreError),
    #[error("other users can write to the data folder {}; run: chmod 700 {}", .0.display(), .0.display())]
    OthersMayWrite(PathBuf),
    #[error("cannot check the data folder")]
    Folder(#[source] io::Error),
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error(
        "the access token differs from that of the other servers on this database; copy the file `token` from the \
         data folder of one of them to {}", .0.display()
    )]
    OtherToken(PathBuf),
    #[error("the server was asked to stop while it started")]
    Stopped,
    #[error(
        "cannot compare the access token with that of the other servers on this database; check that the database \
         accepts writes, and that its synchronous standby is connected if it has one"
    )]
    CompareToken(#[source] StoreError),
    #[error(
        "cannot listen on {address}; choose another address with --listen, or stop the program that uses this one, \
         if there is one"
    )]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Compose(#[from] ComposeError),
    #[error("cannot take over the agents that the previous server left running")]
    Recover(#[source] Refusal),
    #[error("cannot get random bytes from the kernel")]
    Random(#[source] io::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("cannot write the address file to the data folder")]
    Address(#[source] io::Error),
}

impl Server {
    /// Opens the store, takes over the turns that a previous start of the server has left, and serves.
    ///
    /// # Errors
    /// [`StartError`]. No server runs in that case.
    pub async fn start(config: Config) -> Result<Self, StartError> {
        Self::start_after(config, None, std::future::pending()).await
    }

    /// The same. If the node was fenced, `former` is its service, which has ended. `stop` ends a wait for other nodes,
    /// before this one has joined them.
    ///
    /// # Errors
    /// [`StartError`]. No server runs in that case.
    pub async fn start_after(
        config: Config,
        former: Option<&AgentService>,
        stop: impl Future<Output = ()>,
    ) -> Result<Self, StartError> {
        let store = Store::open(&config).await?;
        check_private(&config.data_dir)?;
        let token = if config.insecure_no_auth { None } else { Some(token::read_or_make(&config.data_dir)?) };
        let silence = Duration::from_secs(config.cluster.lost_after_s);
        let agrees = tokio::select! {
            biased;
            agrees = store.agree_on_token(token.as_deref(), silence) => agrees,
            () = stop => return Err(StartError::Stopped),
        };
        if !agrees.map_err(StartError::CompareToken)? {
            return Err(StartError::OtherToken(config.data_dir.join("token")));
        }
        let wanted = config.listen;
        let failed = |source| StartError::Listen { address: wanted, source };
        let listener = TcpListener::bind(wanted).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let forwarded = Forwarded::default();
        let (tls, listener) = with_tls(listener, &config, &forwarded)?;
        // The commands on this machine need no TLS.
        let local = listener.local_addr().map_err(failed)?;

        let outside = compose::outside(&config, &store)?;
        let (limits, runtime) = (all_limits(&config), Handle::current());
        let service = match former {
            Some(former) => former.successor(outside, limits, runtime),
            None => AgentService::new(outside, limits, runtime),
        };
        let adopted_agents = match service.recover().await {
            Ok(agents) => agents,
            Err(refusal) => {
                // The next try is the same node, and would fence what this one has begun: its beats.
                let patience = Duration::from_secs(config.limits.shutdown_timeout_s);
                service.abandon(patience).await;
                return Err(StartError::Recover(refusal));
            }
        };
        tracing::info!(%address, adopted_agents, data_dir = %config.data_dir.display(), "serving");

        let presentation = presentation_config(&config, [address, local], token.clone());
        let api = Api::new(service.clone(), presentation, random_source()?);
        let http = listen(listener, api.clone(), forwarded, &config).map_err(failed)?;
        match address::write(&config.data_dir, local) {
            Err(error) if is_disk_full(&error) => {
                tracing::error!(
                    "the disk is full, so the address file could not be written: other commands reach this server \
                     only with --listen"
                );
            }
            written => written.map_err(StartError::Address)?,
        }
        let handle = http.handle();
        let serving = Handle::current().spawn(http);
        Ok(Self { config, address, local, token, api, service, store, http: handle, serving, _tls: tls })
    }

    /// The server's address as a URL, without a slash at its end. If the server listens on all addresses, the URL for
    /// clients of this machine.
    pub fn url(&self) -> String {
        let scheme = if self.config.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", address::reachable(self.address))
    }

    /// The address for clients in this process and on this machine, as a URL. It needs no TLS.
    pub(crate) fn local_url(&self) -> String {
        format!("http://{}", address::reachable(self.local))
    }

    /// The URL of the page, with a login code that works once. The code is behind the `#`, because browsers do not send
    /// that part. Without a code if the database cannot be used now: then the page asks for the token.
    pub async fn page_url(&self) -> String {
        let url = match &self.config.public_url {
            Some(url) => url.to_string(),
            None => self.url(),
        };
        if self.token.is_none() {
            return format!("{url}/");
        }
        match self.api.issue_login_code().await {
            Ok(code) => format!("{url}/#code={code}"),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "cannot create a login code; the page will ask for the token");
                format!("{url}/")
            }
        }
    }

    /// The token that clients need; `None` if authentication is disabled.
    pub fn token(&self) -> Option<String> {
        self.token.clone()
    }

    /// Cancels one agent and waits until it has ended, at most `limits.shutdown_timeout_s`.
    pub(crate) async fn end_agent(&self, id: &str) {
        let Ok(id) = id.parse() else { return };
        let ended = async {
            self.service.cancel(id).await?;
            let (_, mut follower) = self.service.follow(id, None, AfterLastTurn::End).await?;
            while let Next::Page(_) = follower.next().await? {}
            Ok::<_, Refusal>(())
        };
        let patience = Duration::from_secs(self.config.limits.shutdown_timeout_s);
        if !matches!(tokio::time::timeout(patience, ended).await, Ok(Ok(()))) {
            tracing::warn!(agent = %id, "the agent did not stop within limits.shutdown_timeout_s");
        }
    }

    /// What the server has counted stays readable after its end.
    pub(crate) fn service(&self) -> AgentService {
        self.service.clone()
    }

    /// Completes when this server may save nothing any more, because its node was declared lost or replaced.
    pub(crate) async fn fenced(&self) -> Fence {
        self.service.fenced().await
    }

    /// Ends the streams and stops the server. Returns false if some tasks did not end within
    /// `limits.shutdown_timeout_s`.
    pub async fn stop(self, agents: AtStop) -> bool {
        address::remove(&self.config.data_dir);
        let patience = Duration::from_secs(self.config.limits.shutdown_timeout_s);
        let in_time = self.service.shutdown(agents, patience).await;
        self.http.stop(true).await;
        if let Err(error) = self.serving.await.unwrap_or_else(|error| Err(io::Error::other(error))) {
            tracing::error!(error = &error as &dyn std::error::Error, "the server did not stop cleanly");
        }
        self.store.close().await;
        in_time
    }
}

/// A user who can write to the data folder can put their own token or database there.
fn check_private(data_dir: &Path) -> Result<(), StartError> {
    let mode = std::fs::metadata(data_dir).map_err(StartError::Folder)?.permissions().mode();
    if mode & 0o022 == 0 { Ok(()) } else { Err(StartError::OthersMayWrite(data_dir.to_owned())) }
}

/// Puts TLS in front of the listener, if it is configured. Returns the listener for what is decrypted.
fn with_tls(
    listener: TcpListener,
    config: &Config,
    forwarded: &Forwarded,
) -> Result<(Option<TlsFront>, TcpListener), TlsError> {
    let Some(files) = &config.tls else { return Ok((None, listener)) };
    let (connections, sockets) = (config.limits.connections, socket_limits(&config.limits));
    set_backlog(&listener, connections).map_err(TlsError::Setup)?;
    let (front, listener) = tls::start(listener, files.clone(), forwarded.clone(), connections, sockets)?;
    Ok((Some(front), listener))
}

/// The standard library sets a backlog of 128 connections. If all clients reconnect at once, the kernel drops the
/// connections beyond that, and some clients notice it only after a minute.
fn set_backlog(listener: &TcpListener, connections: usize) -> io::Result<()> {
    Ok(rustix::net::listen(listener, i32::try_from(connections).unwrap_or(i32::MAX))?)
}

fn listen(
    listener: TcpListener,
    api: Api,
    forwarded: Forwarded,
    config: &Config,
) -> io::Result<actix_web::dev::Server> {
    set_backlog(&listener, config.limits.connections)?;
    let base = BasePath::new(config.base_path());
    tokenrail_presentation::listen(
        listener,
        api,
        forwarded,
        move |routes| the_page(routes, base.clone()),
        listen_limits(&config.limits),
    )
}

/// Serves the page beside the API, behind the same guard.
fn the_page(routes: &mut ServiceConfig, base: BasePath) {
    routes.app_data(base).app_data(MissingPage(tokenrail_web::missing));
    for path in tokenrail_web::PATHS {
        routes.service(page(path, tokenrail_web::serve));
    }
}

/// `addresses`: where the server accepts connections.
fn presentation_config(
    config: &Config,
    addresses: [SocketAddr; 2],
    token: Option<String>,
) -> PresentationConfig {
    let mut presentation = PresentationConfig::new(addresses[0].port());
    // All nodes behind a proxy have the same public URL, so a browser that is logged in at one is logged in at all.
    if let Some(url) = &config.public_url {
        presentation.session_cookie = session_cookie(url.port());
    }
    presentation.token = token.map(Into::into);
    presentation.open_paths = tokenrail_web::open_paths();
    let scheme = if config.tls.is_some() { Scheme::Https } else { Scheme::Http };
    presentation.allowed_hosts.extend(address::hosts(addresses[0], scheme));
    presentation.allowed_hosts.extend(address::hosts(addresses[1], Scheme::Http));
    presentation.allowed_hosts.extend(config.allowed_hosts.iter().cloned());
    presentation.allowed_hosts.extend(config.public_url.iter().map(|url| url.authority().to_owned()));
    config.base_path().clone_into(&mut presentation.base_path);
    presentation.allowed_origins.clone_from(&config.allowed_origins);
    presentation.openings_file = Some(config.data_dir.join("tickets"));
    presentation.test_routes = config.test_routes;
    presentation_limits(&config.limits, presentation)
}

/// The source of tickets and request ids. Only the start checks that the kernel returns random bytes.
fn random_source() -> Result<tokenrail_presentation::RandomSource, StartError> {
    SystemRandom::fill(&mut [0; 32]).map_err(StartError::Random)?;
    Ok(Arc::new(|| {
        let mut bytes = [0; 32];
        while SystemRandom::fill(&mut bytes).is_err() {
            std::thread::yield_now();
        }
        bytes
    }))
}
