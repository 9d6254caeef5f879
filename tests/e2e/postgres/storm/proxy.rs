//! A proxy in front of all servers: each connection goes to the next server that accepts it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// The address of a proxy, before there are servers behind it.
pub(super) struct Address {
    listener: TcpListener,
    url: String,
}

impl Address {
    pub(super) async fn take() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        Self { listener, url }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

/// It knows nothing of HTTP. It ends when it is dropped; its connections end with their servers or clients.
pub(super) struct Proxy {
    servers: Arc<Vec<Behind>>,
    task: JoinHandle<()>,
}

struct Behind {
    authority: String,
    /// How many connections it has accepted.
    connections: AtomicUsize,
}

impl Proxy {
    pub(super) fn start(address: Address, authorities: impl Iterator<Item = String>) -> Self {
        let behind = |authority| Behind { authority, connections: AtomicUsize::new(0) };
        let servers = Arc::new(authorities.map(behind).collect::<Vec<_>>());
        let task = Handle::current().spawn(serve(address.listener, Arc::clone(&servers)));
        Self { servers, task }
    }

    /// How many connections each server has accepted.
    pub(super) fn connections(&self) -> Vec<usize> {
        self.servers.iter().map(|server| server.connections.load(Ordering::Relaxed)).collect()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(listener: TcpListener, servers: Arc<Vec<Behind>>) {
    for first in 0.. {
        let (client, _) = listener.accept().await.expect("a client");
        Handle::current().spawn(pass_on(client, first, Arc::clone(&servers)));
    }
}

/// If no server accepts the connection, it is closed.
async fn pass_on(mut client: TcpStream, first: usize, servers: Arc<Vec<Behind>>) {
    for server in servers.iter().cycle().skip(first % servers.len()).take(servers.len()) {
        if let Ok(mut connection) = TcpStream::connect(&server.authority).await {
            server.connections.fetch_add(1, Ordering::Relaxed);
            // It ends when one side does, as it likes.
            let _ = copy_bidirectional(&mut client, &mut connection).await;
            return;
        }
    }
}
