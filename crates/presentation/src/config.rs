//! The configuration of the presentation: access rules and limits.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use tokenrail_application::ListingLimits;

/// A secret text. Its `Debug` output does not show it.
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

/// The access rules and limits of the presentation. The defaults are those of the configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PresentationConfig {
    /// The token that clients must send. With `None`, everyone has access; the caller must allow this on loopback only.
    pub token: Option<Secret>,
    /// The allowed values of `Host`, with the port unless it is 80.
    pub allowed_hosts: Vec<String>,
    /// Allowed origins in addition to those of the allowed hosts, such as `https://app.example`.
    pub allowed_origins: Vec<String>,
    /// The path below which clients reach the server, such as `/agents`: no slash at its end, and empty for the root.
    pub base_path: String,
    /// Paths that can be read (GET, HEAD) without a token: exact paths, or prefixes followed by `*`.
    pub open_paths: Vec<String>,
    /// Maximum bytes of a request's body.
    pub request_bytes: usize,
    /// Maximum bytes of a chat request, which contains the whole conversation. A message in it has at most
    /// `request_bytes`.
    pub chat_bytes: usize,
    /// Maximum bytes of all large requests that are being received, in total.
    pub chats_bytes: usize,
    /// Maximum number of images in one message.
    pub prompt_images: usize,
    /// Maximum bytes of one of them, decoded.
    pub image_bytes: usize,
    /// Maximum bytes of all images in one message.
    pub prompt_image_bytes: usize,
    /// Maximum number of open `WebSockets` and event streams (`limits.connections`, which also bounds TCP connections).
    pub connections: usize,
    /// The same for one peer. The loopback address has no limit of its own.
    pub streams_per_peer: usize,
    /// Maximum number of Socket.IO clients that have not sent a token yet.
    pub unauthenticated_clients: usize,
    /// The same for one peer. The loopback address has no limit of its own.
    pub unauthenticated_clients_per_peer: usize,
    /// How long a Socket.IO client may take to connect to the namespace, and to complete its upgrade to a WebSocket.
    pub handshake_timeout: Duration,
    /// Maximum number of failed logins of one peer per minute.
    pub failed_logins_per_minute: u32,
    /// Maximum number of peers whose failed logins are remembered.
    pub peers: usize,
    /// Maximum bytes of a request's head.
    pub header_bytes: usize,
    /// Maximum number of headers of a request.
    pub headers: usize,
    /// How long the body of a request may take to arrive.
    pub body_timeout: Duration,
    /// Bytes that one stream sends before it yields to other streams.
    pub stream_turn_bytes: usize,
    /// Maximum number of agents that one WebSocket follows.
    pub subscriptions_per_connection: usize,
    /// Maximum bytes of a message from a WebSocket client.
    pub ws_message_bytes: usize,
    /// Maximum bytes of frames that are collected for a client that requested batches.
    pub ws_batch_bytes: usize,
    /// How long a stream may be silent before the server sends a sign of life. Also the period of a WebSocket's
    /// `heartbeat`.
    pub heartbeat: Duration,
    /// How long after the end of a turn a Letta client may retry its message and still receive that turn.
    pub retry_window: Duration,
    /// The period of a WebSocket's ping.
    pub ping: Duration,
    /// How long a WebSocket client may take to answer a ping.
    pub pong_timeout: Duration,
    /// How long a Socket.IO client may take to answer a ping. It is longer, because such a ping waits behind the event
    /// that is being sent.
    pub socket_io_pong_timeout: Duration,
    /// Maximum number of items in one list (`limits.list_agents`).
    pub list_agents: usize,
    /// Approximate maximum bytes of one list.
    pub list_bytes: usize,
    /// Maximum number of unused tickets.
    pub tickets: usize,
    /// How long a ticket may stay unused.
    pub ticket_age: Duration,
    /// How long the ticket of an event stream can resume that stream.
    pub ticket_resume: Duration,
    /// Maximum number of tickets that are remembered because they can resume an event stream.
    pub openings: usize,
    /// The file that keeps them across a restart. With `None`, a restart forgets them.
    pub openings_file: Option<PathBuf>,
    /// How long a session of a browser lasts.
    pub session: Duration,
    /// The name of its cookie: see [`session_cookie`].
    pub session_cookie: String,
    /// Maximum number of unused login codes.
    pub login_codes: usize,
    /// How long a login code may stay unused.
    pub login_code_age: Duration,
    /// Maximum nesting depth of JSON in a request.
    pub json_depth: usize,
    /// Whether the server has the routes `/ws/echo`, for WebSocket conformance tests, and `/test/panic/{words}`, for
    /// tests of the response to a panic.
    pub test_routes: bool,
    /// Maximum number of files that are imported at the same time. Each has a thread of its own.
    pub imports: usize,
    /// Maximum bytes of an imported file.
    pub import_bytes: u64,
    /// Maximum bytes of one event or turn of the file.
    pub import_event_bytes: usize,
    /// How long a client may take to send the file.
    pub import_timeout: Duration,
}

/// The name of the session cookie of a server that browsers reach at this port.
///
/// Browsers send a cookie to all ports of a host, so two servers on one machine would overwrite each other's cookies
/// if they had the same name.
pub fn session_cookie(port: u16) -> String {
    format!("tokenrail_session_{port}")
}

impl PresentationConfig {
    /// The defaults, for a server that listens on `port` of the loopback addresses. No token is set.
    pub fn new(port: u16) -> Self {
        let lists = ListingLimits::default();
        Self {
            token: None,
            allowed_hosts: own_hosts(port),
            allowed_origins: Vec::new(),
            base_path: String::new(),
            open_paths: Vec::new(),
            request_bytes: 1 << 20,
            chat_bytes: 32 << 20,
            chats_bytes: 256 << 20,
            prompt_images: 8,
            // A model API accepts 5 MiB of base64.
            image_bytes: (5 << 20) / 4 * 3,
            // A model API accepts 32 MB of JSON, with the images in base64 and the conversation.
            prompt_image_bytes: 20 << 20,
            connections: 4096,
            streams_per_peer: 256,
            unauthenticated_clients: 256,
            unauthenticated_clients_per_peer: 16,
            handshake_timeout: Duration::from_secs(10),
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
            socket_io_pong_timeout: Duration::from_secs(20),
            list_agents: lists.list_agents,
            list_bytes: lists.list_bytes,
            tickets: 1024,
            ticket_age: Duration::from_secs(30),
            ticket_resume: Duration::from_hours(1),
            openings: 16_384,
            openings_file: None,
            session: Duration::from_hours(30 * 24),
            session_cookie: session_cookie(port),
            login_codes: 64,
            login_code_age: Duration::from_mins(10),
            json_depth: 64,
            test_routes: false,
            imports: 2,
            import_bytes: 1 << 30,
            import_event_bytes: 128 << 20,
            import_timeout: Duration::from_mins(10),
        }
    }
}

/// The names of this machine, as clients write them.
fn own_hosts(port: u16) -> Vec<String> {
    let mut hosts = Vec::new();
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        hosts.push(format!("{host}:{port}"));
        if port == 80 {
            // Clients omit the default port of the scheme.
            hosts.push(host.to_owned());
        }
    }
    hosts
}
