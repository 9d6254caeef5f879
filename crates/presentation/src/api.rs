//! The state that all handlers share.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokenrail_application::{
    AgentService, CredentialKind, CredentialRoom, CredentialScope, StoreError, WhenFull,
};
use tokenrail_domain::Timestamp;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::config::PresentationConfig;
use crate::error::{Code, Problem};
use crate::hex::hex;
use crate::limiter::PeerBuckets;
use crate::metrics::Metrics;
pub(crate) use crate::peer::StreamPlace;
use crate::peer::{NoPlace, Places};
use crate::polled_sessions::PolledSessions;
use crate::sessions::{LoginCodes, Sessions};
use crate::shared_credentials::SharedCredentials;
use crate::tickets::{Openings, OwnTickets, Seal, SharedTicketLimits, SharedTickets, Tickets};

/// A source of unpredictable random bytes.
pub type RandomSource = Arc<dyn Fn() -> [u8; 32] + Send + Sync>;

/// The state that all handlers share: the use cases, and the presentation's own state. Cheap to clone; all clones share
/// one state.
#[derive(Clone)]
pub struct Api(Arc<Shared>);

struct Shared {
    service: AgentService,
    config: PresentationConfig,
    random: RandomSource,
    tickets: Tickets,
    sessions: Sessions,
    /// Those of this server alone: unused if there are shared credentials.
    login_codes: LoginCodes,
    /// If several servers share the store.
    credentials: Option<SharedCredentials>,
    failed_logins: PeerBuckets,
    streams: Places,
    /// For clients that have not shown a token yet. Socket.IO clients open their connection first, and send the token
    /// in their first packet. They are counted apart, so that they cannot take the places of clients with a token.
    lobby: Places,
    polled: PolledSessions,
    /// Room for large chat requests, in KiB.
    chats: Arc<Semaphore>,
    /// One permit for each file that may be received at the same time: each has a thread. The application counts the
    /// imports themselves (`Core::imports`). Both limits are `limits.imports`.
    imports: Arc<Semaphore>,
    metrics: Metrics,
    /// A random prefix that makes request ids unique across restarts.
    life: String,
    requests: AtomicU64,
}

/// The unit in which room for large chat requests is counted, in bytes.
const KIB: usize = 1 << 10;

/// Room for a large chat request. Dropping it frees the room.
pub(crate) struct LargeRequestPermit(OwnedSemaphorePermit);

impl LargeRequestPermit {
    /// Adds the room of `more`.
    pub(crate) fn grow(&mut self, more: Self) {
        self.0.merge(more.0);
    }
}

impl Api {
    pub fn new(service: AgentService, config: PresentationConfig, random: RandomSource) -> Self {
        // Without a token, the guard checks no tickets and no sessions, so any key will do.
        let secret = match &config.token {
            Some(token) => token.reveal().as_bytes().to_vec(),
            None => random().to_vec(),
        };
        let shared = service.shared_credentials().map(|store| SharedCredentials::new(store, &secret));
        Self(Arc::new(Shared {
            tickets: match &shared {
                Some(shared) => shared_tickets(shared.clone(), &config),
                None => own_tickets(&secret, &config, service.now()),
            },
            sessions: Sessions::new(
                &secret,
                config.session_cookie.clone(),
                &config.base_path,
                config.session,
            ),
            login_codes: LoginCodes::new(config.login_codes, config.login_code_age),
            credentials: shared,
            failed_logins: PeerBuckets::new(config.failed_logins_per_minute, config.peers),
            streams: Places::new(config.connections, config.streams_per_peer),
            lobby: Places::new(config.unauthenticated_clients, config.unauthenticated_clients_per_peer),
            polled: PolledSessions::default(),
            chats: Arc::new(Semaphore::new(config.chats_bytes.div_ceil(KIB).min(Semaphore::MAX_PERMITS))),
            imports: Arc::new(Semaphore::new(config.imports.min(Semaphore::MAX_PERMITS))),
            metrics: Metrics::default(),
            life: hex(&random()[..4]),
            requests: AtomicU64::new(0),
            service,
            config,
            random,
        }))
    }

    pub(crate) fn service(&self) -> &AgentService {
        &self.0.service
    }

    pub(crate) fn config(&self) -> &PresentationConfig {
        &self.0.config
    }

    pub(crate) fn tickets(&self) -> &Tickets {
        &self.0.tickets
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.0.sessions
    }

    /// Issues a code that starts one session of a browser.
    ///
    /// # Errors
    /// [`StoreError`] if several servers share the store, and it cannot be used now.
    pub async fn issue_login_code(&self) -> Result<String, StoreError> {
        let (Shared { credentials, login_codes, config, .. }, random) = (&*self.0, self.random());
        let Some(shared) = credentials else { return Ok(login_codes.issue(random)) };
        let room = CredentialRoom { max: config.login_codes, when_full: WhenFull::ReplaceOldest };
        let (kind, scope) = (CredentialKind::LoginCode, CredentialScope::default());
        let code = shared.issue(kind, random, scope, config.login_code_age, room).await?;
        // Other nodes have taken the room meanwhile.
        code.ok_or(StoreError::Busy)
    }

    /// Uses a login code up. Returns whether it was valid.
    pub(crate) async fn redeem_login_code(&self, code: &str) -> Result<bool, StoreError> {
        match &self.0.credentials {
            Some(shared) => Ok(shared.redeem(CredentialKind::LoginCode, code).await?.is_some()),
            None => Ok(self.0.login_codes.redeem(code)),
        }
    }

    pub(crate) fn polled_sessions(&self) -> &PolledSessions {
        &self.0.polled
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn random(&self) -> [u8; 32] {
        (self.0.random)()
    }

    /// A request id that is unique, even across restarts.
    pub(crate) fn request_id(&self) -> String {
        format!("{}-{}", self.0.life, self.0.requests.fetch_add(1, Ordering::Relaxed))
    }

    /// Counts a failed login, and returns the problem to respond with. Failed logins do not block a valid token: other
    /// clients may share the peer's address, and 256 bits cannot be guessed.
    pub(crate) fn failed_login(&self, peer: IpAddr) -> Problem {
        match self.0.failed_logins.take(peer) {
            Ok(()) => Problem::unauthenticated(),
            Err(wait) => Problem::rate_limited(
                "too many failed logins in a minute; wait, or raise limits.failed_logins_per_minute",
                wait,
            ),
        }
    }

    /// Takes a place for a stream.
    ///
    /// # Errors
    /// [`Problem`] if no place is free.
    pub(crate) fn open_stream(&self, peer: IpAddr) -> Result<StreamPlace, Problem> {
        self.0.streams.take(peer).map_err(|full| {
            let detail = match full {
                NoPlace::AtAll => "too many open event streams and WebSockets; raise limits.connections",
                NoPlace::ForPeer => {
                    "this client address has too many open event streams and WebSockets; raise \
                     limits.streams_per_peer"
                }
            };
            Problem::new(Code::CapacityExhausted, detail)
        })
    }

    /// Takes a place for a client that has not shown a token yet.
    ///
    /// # Errors
    /// [`Problem`] if no place is free.
    pub(crate) fn enter_lobby(&self, peer: IpAddr) -> Result<StreamPlace, Problem> {
        let detail = "too many connected clients have not sent a token yet; try again later, or send the token \
                      in the header Authorization";
        self.0.lobby.take(peer).map_err(|_| Problem::new(Code::CapacityExhausted, detail))
    }

    /// Takes room for `bytes` of a large request.
    ///
    /// # Errors
    /// [`Problem`] if there is not enough room.
    pub(crate) fn large_request_permit(&self, bytes: usize) -> Result<LargeRequestPermit, Problem> {
        let kib = u32::try_from(bytes.div_ceil(KIB)).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.0.chats).try_acquire_many_owned(kib);
        let full = |_| {
            Problem::new(
                Code::CapacityExhausted,
                "too many large requests are being received; try again later, or raise limits.chats_bytes",
            )
        };
        Ok(LargeRequestPermit(permit.map_err(full)?))
    }

    /// Waits for room for `bytes` of a large response, but not longer than for a body. It is the same room, so slow
    /// readers leave enough memory for requests.
    ///
    /// # Errors
    /// [`Problem`] if there is not enough room in time.
    pub(crate) async fn large_response_permit(&self, bytes: usize) -> Result<LargeRequestPermit, Problem> {
        let config = &self.0.config;
        let kib = bytes.min(config.chats_bytes).div_ceil(KIB).min(config.chats_bytes / KIB);
        let permit = Arc::clone(&self.0.chats).acquire_many_owned(u32::try_from(kib).unwrap_or(u32::MAX));
        match timeout(config.body_timeout, permit).await {
            Ok(Ok(permit)) => Ok(LargeRequestPermit(permit)),
            _ => Err(Problem::new(
                Code::CapacityExhausted,
                "too many images are being read; try again later, or raise limits.chats_bytes",
            )),
        }
    }

    /// Takes a place for the reader of an imported file.
    ///
    /// # Errors
    /// [`Problem`] if no place is free.
    pub(crate) fn import_place(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let permit = Arc::clone(&self.0.imports).try_acquire_owned();
        permit.map_err(|_| {
            Problem::new(
                Code::CapacityExhausted,
                "too many files are being imported; try again later, or raise limits.imports",
            )
        })
    }

    /// The number of open streams.
    pub(crate) fn open_streams(&self) -> usize {
        self.0.streams.count_taken()
    }
}

fn own_tickets(secret: &[u8], config: &PresentationConfig, now: Timestamp) -> Tickets {
    let openings = Openings::new(config.openings_file.clone(), config.openings, now);
    let PresentationConfig { tickets, ticket_age, ticket_resume, .. } = *config;
    Tickets::Own(OwnTickets::new(Seal::new(secret), openings, tickets, ticket_age, ticket_resume))
}

fn shared_tickets(credentials: SharedCredentials, config: &PresentationConfig) -> Tickets {
    let limits = SharedTicketLimits {
        unused: config.tickets,
        age: config.ticket_age,
        opened: config.openings,
        resume: config.ticket_resume,
    };
    Tickets::Shared(SharedTickets::new(credentials, limits))
}
