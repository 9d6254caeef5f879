//! A network between a client and a server that loses connections, is slow, or delivers in one direction only.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::Server;

/// A proxy in front of a server. At first it passes everything on.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    network: Arc<Network>,
}

/// Where bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    ToServer,
    ToClient,
}

/// What of a commit does not arrive. Its connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostCommit {
    /// Nothing is saved.
    Request,
    /// It is saved, and nobody is told.
    Answer,
}

#[derive(Debug, Default)]
struct Network {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    holds_to_server: bool,
    holds_to_client: bool,
    refuses: bool,
    /// Of the next commit.
    loses: Option<LostCommit>,
    delay: Duration,
    /// Only connections on which the client has said one of these are disturbed. If there are none, all are.
    only: Vec<String>,
    open: Vec<Arc<Connection>>,
}

#[derive(Debug)]
struct Connection {
    ends: [TcpStream; 2],
    /// The client has said one of the texts of [`Proxy::only`].
    has_said: AtomicBool,
    /// What the server answers does not arrive.
    is_deaf: AtomicBool,
}

impl Connection {
    fn end(&self) {
        for end in &self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

impl State {
    fn disturbs(&self, connection: &Connection) -> bool {
        self.only.is_empty() || connection.has_said.load(Ordering::Relaxed)
    }

    fn holds(&self, connection: &Connection, direction: Direction) -> bool {
        let holds = match direction {
            Direction::ToServer => self.holds_to_server,
            Direction::ToClient => self.holds_to_client,
        };
        holds && self.disturbs(connection)
    }
}

impl Network {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_all();
    }

    /// Notes what a client says, which comes in one piece if it is short.
    fn hear(&self, connection: &Connection, said: &[u8]) {
        let state = self.state();
        let says = |text: &String| said.windows(text.len()).any(|part| part == text.as_bytes());
        if state.only.iter().any(says) {
            connection.has_said.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until this direction delivers. Returns how long it takes, and nothing if the connection is refused.
    fn until_it_delivers(&self, connection: &Connection, direction: Direction) -> Option<Duration> {
        let held = |state: &mut State| state.holds(connection, direction);
        let state = self.changed.wait_while(self.state(), held);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        match state.disturbs(connection) {
            true if state.refuses => None,
            true => Some(state.delay),
            false => Some(Duration::ZERO),
        }
    }

    /// Passes bytes on until one end is closed, or until something of a commit is lost.
    fn pass(&self, connection: &Connection, direction: Direction) {
        let [client, server] = &connection.ends;
        let (mut from, mut to) = match direction {
            Direction::ToServer => (client, server),
            Direction::ToClient => (server, client),
        };
        let mut bytes = [0; 8192];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            if direction == Direction::ToServer {
                self.hear(connection, &bytes[..read]);
            }
            let Some(delay) = self.until_it_delivers(connection, direction) else { break };
            thread::sleep(delay);
            let is_lost = match direction {
                Direction::ToServer => self.loses(&bytes[..read], connection),
                Direction::ToClient => connection.is_deaf.load(Ordering::Acquire),
            };
            if is_lost || to.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        connection.end();
    }
}

impl Network {
    /// Whether these bytes do not reach the server.
    fn loses(&self, bytes: &[u8], connection: &Connection) -> bool {
        if !bytes.windows(COMMIT.len()).any(|part| part == COMMIT) {
            return false;
        }
        let lost = self.state().loses.take();
        connection.is_deaf.store(lost == Some(LostCommit::Answer), Ordering::Release);
        lost == Some(LostCommit::Request)
    }
}

/// As a statement of its own.
const COMMIT: &[u8] = b"COMMIT\0";

impl Proxy {
    pub fn start(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (network, server) = (Arc::new(Network::default()), server.address());
        let theirs = Arc::clone(&network);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                accept(client, &server, &theirs);
            }
        });
        Self { address, network }
    }

    /// Such as `127.0.0.1:5433`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Disturbs only connections on which the client says one of these texts, such as `LISTEN `, from now on. What they
    /// say without encryption is read.
    pub fn only(&self, texts: &[&str]) {
        self.network.change(|state| state.only = texts.iter().map(|text| (*text).to_owned()).collect());
    }

    /// What is sent in this direction arrives only after [`Proxy::release`]. Nobody is told.
    pub fn hold(&self, direction: Direction) {
        self.network.change(|state| match direction {
            Direction::ToServer => state.holds_to_server = true,
            Direction::ToClient => state.holds_to_client = true,
        });
    }

    /// Everything arrives this much later.
    pub fn delay(&self, delay: Duration) {
        self.network.change(|state| state.delay = delay);
    }

    /// Ends all connections. What is held is lost. Returns how many there were.
    pub fn cut(&self) -> usize {
        let mut state = self.network.state();
        let open = std::mem::take(&mut state.open);
        let (cut, kept): (Vec<_>, Vec<_>) =
            open.into_iter().partition(|connection| state.disturbs(connection));
        state.open = kept;
        drop(state);
        for connection in &cut {
            connection.end();
        }
        cut.len()
    }

    /// Ends all connections, and accepts none until [`Proxy::release`].
    pub fn refuse(&self) {
        self.network.change(|state| state.refuses = true);
        self.cut();
    }

    /// The connection of the next COMMIT breaks.
    pub fn lose_commit(&self, lost: LostCommit) {
        self.network.change(|state| state.loses = Some(lost));
    }

    /// Whether the COMMIT of [`Proxy::lose_commit`] is still to come.
    pub fn waits_for_commit(&self) -> bool {
        self.network.state().loses.is_some()
    }

    /// Everything is delivered again, at once.
    pub fn release(&self) {
        self.network.change(|state| {
            (state.holds_to_server, state.holds_to_client, state.refuses) = (false, false, false);
            state.delay = Duration::ZERO;
        });
    }
}

fn accept(client: TcpStream, server: &str, network: &Arc<Network>) {
    let Ok(server) = TcpStream::connect(server) else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let connection = Connection {
        ends: [client, server],
        has_said: AtomicBool::new(false),
        is_deaf: AtomicBool::new(false),
    };
    let connection = Arc::new(connection);
    {
        let mut state = network.state();
        if state.refuses && state.disturbs(&connection) {
            return;
        }
        state.open.push(Arc::clone(&connection));
    }
    for direction in [Direction::ToServer, Direction::ToClient] {
        let (network, connection) = (Arc::clone(network), Arc::clone(&connection));
        thread::spawn(move || network.pass(&connection, direction));
    }
}
