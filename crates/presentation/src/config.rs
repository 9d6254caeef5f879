//! What the presentation is told by the configuration: who may come, and every bound.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// What is shown to nobody: whoever prints it gets dots.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(secret: T) -> Self {
        Self(secret.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Who may come, and every bound of the presentation, with the defaults of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentationConfig {
    /// What clients must send; none: everybody may come. The caller sees to it that this is so on loopback only.
    pub token: Option<Secret>,
    /// The authorities that a `Host` may be, with their port where it is not 80.
    pub allowed_hosts: Vec<String>,
    /// Origins that may come besides those of the allowed hosts: `https://app.example`.
    pub allowed_origins: Vec<String>,
    /// Paths that are read (GET, HEAD) without a token: exact, or a beginning followed by `*`.
    pub open_paths: Vec<String>,
    /// Bytes of a request's body.
    pub request_bytes: usize,
    /// Bytes of a request of a chat, which brings the whole conversation; a message in it has `request_bytes`.
    pub chat_bytes: usize,
    /// Bytes of large requests of chats, all together, that are being received.
    pub chats_bytes: usize,
    /// `WebSockets` and event streams that are open at the same time.
    pub connections: usize,
    /// The same, of one peer; the loopback address has no limit of its own.
    pub streams_per_peer: usize,
    /// Logins of one peer per minute that may fail.
    pub failed_logins_per_minute: u32,
    /// Peers whose failed logins are remembered.
    pub peers: usize,
    /// Bytes of a request's head.
    pub header_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// How long the body of a request may take.
    pub body_timeout: Duration,
    /// Bytes that one stream takes before others have their turn.
    pub stream_turn_bytes: usize,
    /// Agents that one WebSocket follows.
    pub subscriptions_per_connection: usize,
    /// Bytes of a message from a WebSocket client.
    pub ws_message_bytes: usize,
    /// Bytes of frames that are collected for a client that asked for batches.
    pub ws_batch_bytes: usize,
    /// Silence on a stream before a sign of life; at the same time the period of a WebSocket's `heartbeat`.
    pub heartbeat: Duration,
    /// How long after a turn has ended a client of Letta's may still try its message again, and be given that turn.
    pub retry_window: Duration,
    /// The period of a WebSocket's ping.
    pub ping: Duration,
    /// How long a WebSocket client may take to answer a ping.
    pub pong_timeout: Duration,
    /// Items of one list.
    pub list_agents: usize,
    /// Bytes of one list, about.
    pub list_bytes: usize,
    /// Tickets that wait for their use.
    pub tickets: usize,
    /// How long a ticket may wait.
    pub ticket_age: Duration,
    /// How long the ticket of an event stream is good for coming back to it.
    pub ticket_resume: Duration,
    /// Tickets of event streams that are remembered for coming back.
    pub openings: usize,
    /// The file that remembers them over a restart; none: a restart forgets them.
    pub openings_file: Option<PathBuf>,
    /// How deep JSON in a request may be nested.
    pub json_depth: usize,
    /// Whether `/ws/echo` is there, for tests of WebSocket conformance, and `/test/panic/{words}`, for tests of what a
    /// fault leaves behind.
    pub test_routes: bool,
    /// Files that are read at the same time; each has a thread of its own.
    pub imports: usize,
    /// Bytes of a file that is imported.
    pub import_bytes: u64,
    /// Bytes of one event or turn of it.
    pub import_event_bytes: usize,
    /// How long a client may take to send it.
    pub import_timeout: Duration,
}

impl PresentationConfig {
    /// The defaults, for a server that listens on `port` of the loopback addresses. No token is set.
    pub fn new(port: u16) -> Self {
        let mut allowed_hosts = Vec::new();
        for host in ["127.0.0.1", "localhost", "[::1]"] {
            allowed_hosts.push(format!("{host}:{port}"));
            if port == 80 {
                // Clients leave out the port that is the default of the scheme.
                allowed_hosts.push(host.to_owned());
            }
        }
        Self {
            token: None,
            allowed_hosts,
            allowed_origins: Vec::new(),
            open_paths: Vec::new(),
            request_bytes: 1 << 20,
            chat_bytes: 32 << 20,
            chats_bytes: 256 << 20,
            connections: 4096,
            streams_per_peer: 256,
            failed_logins_per_minute: 10,
            peers: 1024,
            header_bytes: 32 << 10,
            headers: 64,
            body_timeout: Duration::from_secs(10),
            stream_turn_bytes: 256 << 10,
            subscriptions_per_connection: 128,
            ws_message_bytes: 64 << 10,
            ws_batch_bytes: 256 << 10,
            heartbeat: Duration::from_secs(15),
            retry_window: Duration::from_secs(10),
            ping: Duration::from_secs(25),
            pong_timeout: Duration::from_secs(10),
            list_agents: 500,
            list_bytes: 4 << 20,
            tickets: 1024,
            ticket_age: Duration::from_secs(30),
            ticket_resume: Duration::from_hours(1),
            openings: 16_384,
            openings_file: None,
            json_depth: 64,
            test_routes: false,
            imports: 2,
            import_bytes: 1 << 30,
            import_event_bytes: 128 << 20,
            import_timeout: Duration::from_mins(10),
        }
    }
}
