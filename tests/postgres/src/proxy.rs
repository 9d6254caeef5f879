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
    /// Both ends of each connection.
    open: Vec<TcpStream>,
}

impl State {
    fn holds(&self, direction: Direction) -> bool {
        match direction {
            Direction::ToServer => self.holds_to_server,
            Direction::ToClient => self.holds_to_client,
        }
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

    /// Waits until this direction delivers. Returns how long it takes.
    fn until_it_delivers(&self, direction: Direction) -> Duration {
        let held = |state: &mut State| state.holds(direction);
        let state = self.changed.wait_while(self.state(), held);
        state.unwrap_or_else(PoisonError::into_inner).delay
    }

    /// Passes bytes on until one end is closed. What the server answers is lost as soon as `deaf` says so.
    fn pass(&self, mut from: TcpStream, mut to: TcpStream, direction: Direction, deaf: &AtomicBool) {
        let mut bytes = [0; 8192];
        while let Ok(read @ 1..) = from.read(&mut bytes) {
            thread::sleep(self.until_it_delivers(direction));
            let is_lost = match direction {
                Direction::ToServer => self.loses(&bytes[..read], deaf),
                Direction::ToClient => deaf.load(Ordering::Acquire),
            };
            if is_lost || to.write_all(&bytes[..read]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }
}

impl Network {
    /// Whether these bytes do not reach the server.
    fn loses(&self, bytes: &[u8], deaf: &AtomicBool) -> bool {
        if !bytes.windows(COMMIT.len()).any(|part| part == COMMIT) {
            return false;
        }
        let lost = self.state().loses.take();
        deaf.store(lost == Some(LostCommit::Answer), Ordering::Release);
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
        let open = std::mem::take(&mut self.network.state().open);
        for end in &open {
            let _ = end.shutdown(Shutdown::Both);
        }
        open.len() / 2
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
    let clone = |stream: &TcpStream| stream.try_clone().expect("a socket");
    {
        let mut state = network.state();
        if state.refuses {
            return;
        }
        state.open.extend([clone(&client), clone(&server)]);
    }
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let pairs =
        [(clone(&client), clone(&server), Direction::ToServer), (server, client, Direction::ToClient)];
    let deaf = Arc::new(AtomicBool::new(false));
    for (from, to, direction) in pairs {
        let (network, deaf) = (Arc::clone(network), Arc::clone(&deaf));
        thread::spawn(move || network.pass(from, to, direction, &deaf));
    }
}
