//! TLS in front of the server: connections are decrypted here, and passed on to a listener on a loopback address.
//!
//! So the streams of the server need not know of TLS. The server still learns the address of each client, because its
//! limits count by client.

mod expiry;

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokenrail_domain::Timestamp;
use tokenrail_presentation::{Announced, Forwarded, SocketLimits, set_limits};
use tokio::io::{AsyncWriteExt as _, copy, split};
use tokio::net::{TcpSocket, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config::TlsConfig;

/// How long a client may take for the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client may take to end its side after the server has ended the connection. The server itself reads the
/// rest of a request for a second.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The loopback addresses that connections to the server come from, after 127.0.0.0. Each address has its own ports, so
/// that many short connections do not use them up.
const SOURCES: u32 = (1 << 24) - 2;
/// How often a new connection looks whether the files have changed, at most.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// The pause after a connection could not be accepted, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A certificate that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read the TLS certificate {}", path.display())]
    Certificate { path: PathBuf, source: rustls::pki_types::pem::Error },
    #[error("cannot read the TLS key {}", path.display())]
    Key { path: PathBuf, source: rustls::pki_types::pem::Error },
    #[error("the TLS key {} does not belong to the certificate {}; set server.tls_key to the key of this certificate", key.display(), certificate.display())]
    Pair { certificate: PathBuf, key: PathBuf, source: rustls::Error },
    #[error("cannot set up TLS")]
    Setup(#[source] io::Error),
}

/// Accepts TLS connections, until it is dropped.
pub(crate) struct TlsFront {
    task: AbortHandle,
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Accepts TLS connections on `public` from now on, at most `connections` at once. Returns the listener that they are
/// passed on to.
///
/// # Errors
/// If the certificate cannot be read, or the listener cannot be set up.
pub(crate) fn start(
    public: TcpListener,
    files: TlsConfig,
    forwarded: Forwarded,
    connections: usize,
    sockets: SocketLimits,
) -> Result<(TlsFront, TcpListener), TlsError> {
    if is_readable_by_others(&files.key) {
        let key = files.key.display();
        tracing::warn!("other users can read the TLS key {key}; run: chmod o-r {key}");
    }
    let keys = Arc::new(Keys::read(files)?);
    let mut config = ServerConfig::builder().with_no_client_auth().with_cert_resolver(keys);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let private = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(TlsError::Setup)?;
    let address = private.local_addr().map_err(TlsError::Setup)?;
    public.set_nonblocking(true).map_err(TlsError::Setup)?;
    let public = tokio::net::TcpListener::from_std(public).map_err(TlsError::Setup)?;
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let passage = Passage { address, forwarded, sockets };
    let task = Handle::current().spawn(accept(public, acceptor, passage, connections));
    Ok((TlsFront { task: task.abort_handle() }, private))
}

/// Accepts connections for ever. If it is dropped, they all end.
async fn accept(
    public: tokio::net::TcpListener,
    acceptor: TlsAcceptor,
    passage: Passage,
    connections: usize,
) {
    let places = Arc::new(Semaphore::new(connections));
    let mut open = JoinSet::new();
    for source in (0..SOURCES).map(source).cycle() {
        // Further clients wait in the queue of the kernel.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let accepted = public.accept().await;
        while open.try_join_next().is_some() {}
        match accepted {
            Ok((socket, client)) => {
                let (acceptor, passage) = (acceptor.clone(), passage.clone());
                open.spawn(async move {
                    // The ends of connections are none of the server's errors: clients leave as they like.
                    let _ = passage.pass(socket, client, source, &acceptor).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Where decrypted connections go.
#[derive(Clone)]
struct Passage {
    address: SocketAddr,
    forwarded: Forwarded,
    sockets: SocketLimits,
}

/// The address of a connection to the server. The kernel chooses the port.
fn source(number: u32) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::from(u32::from(Ipv4Addr::LOCALHOST) + number), 0))
}

impl Passage {
    /// Decrypts one connection until one side closes it.
    async fn pass(
        self,
        socket: TcpStream,
        client: SocketAddr,
        source: SocketAddr,
        acceptor: &TlsAcceptor,
    ) -> io::Result<()> {
        set_limits(&socket, self.sockets);
        let outside = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(socket)).await??;
        let reached = self.reach(source, client).await;
        let (inside, _client) = reached.inspect_err(|error| {
            let error = error as &dyn std::error::Error;
            tracing::warn!(error, %source, "cannot pass a TLS connection on to the server");
        })?;
        exchange(outside, inside).await
    }

    /// Connects to the server from an address, which stands for the client.
    async fn reach(&self, source: SocketAddr, client: SocketAddr) -> io::Result<(TcpStream, Announced)> {
        let inner = TcpSocket::new_v4()?;
        // The address is known before the server can see the connection.
        inner.bind(source)?;
        let announced = self.forwarded.announce(inner.local_addr()?, client);
        let inside = inner.connect(self.address).await?;
        inside.set_nodelay(true)?;
        Ok((inside, announced))
    }
}

/// Passes bytes on in both directions. When the server has ended its side, the client has a short time to end its own:
/// otherwise a silent client would keep its place for ever.
async fn exchange(outside: TlsStream<TcpStream>, mut inside: TcpStream) -> io::Result<()> {
    let (mut from_client, mut to_client) = split(outside);
    let (mut from_server, mut to_server) = inside.split();
    let mut requests = pin!(async {
        copy(&mut from_client, &mut to_server).await?;
        to_server.shutdown().await
    });
    let mut responses = pin!(async {
        copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    });
    tokio::select! {
        ended = &mut requests => {
            ended?;
            responses.await
        }
        ended = &mut responses => {
            ended?;
            timeout(CLOSE_TIMEOUT, requests).await?
        }
    }
}

/// The current certificate. It is read again when its files have changed.
#[derive(Debug)]
struct Keys {
    files: TlsConfig,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    key: Arc<CertifiedKey>,
    version: Version,
    looked: Instant,
}

/// When the files were changed last. `None` if a file cannot be read.
type Version = [Option<SystemTime>; 2];

impl Keys {
    fn read(files: TlsConfig) -> Result<Self, TlsError> {
        let version = files.version();
        let key = Arc::new(files.read()?);
        Ok(Self { files, current: Mutex::new(Current { key, version, looked: Instant::now() }) })
    }
}

impl ResolvesServerCert for Keys {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if LOOK_AGAIN <= current.looked.elapsed() {
            current.looked = Instant::now();
            let version = self.files.version();
            if version != current.version {
                match self.files.read() {
                    Ok(key) => {
                        tracing::info!("the TLS certificate has changed");
                        current.key = Arc::new(key);
                        current.version = version;
                    }
                    // The files may be in the middle of a change. The next connection tries again.
                    Err(error) => {
                        let error = &error as &dyn std::error::Error;
                        tracing::error!(
                            error,
                            "cannot read the changed TLS certificate; the earlier one stays in use; correct the \
                             files of server.tls_cert and server.tls_key"
                        );
                    }
                }
            }
        }
        Some(Arc::clone(&current.key))
    }
}

impl TlsConfig {
    fn version(&self) -> Version {
        [&self.certificate, &self.key].map(|path| fs::metadata(path).and_then(|file| file.modified()).ok())
    }

    /// When the first certificate of the chain expires. `None` if that cannot be read.
    ///
    /// # Errors
    /// If the server cannot use the files.
    pub(crate) fn expires(&self) -> Result<Option<Timestamp>, TlsError> {
        let chain = self.read()?.cert;
        let ends: Option<Vec<_>> = chain.iter().map(|certificate| expiry::expiry(certificate)).collect();
        Ok(ends.and_then(|ends| ends.into_iter().min()))
    }

    fn read(&self) -> Result<CertifiedKey, TlsError> {
        let Self { certificate, key } = self;
        let failed = |source| TlsError::Certificate { path: certificate.clone(), source };
        let chain = CertificateDer::pem_file_iter(certificate).map_err(failed)?;
        let chain = chain.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        let private = PrivateKeyDer::from_pem_file(key);
        let private = private.map_err(|source| TlsError::Key { path: key.clone(), source })?;
        let pair = |source| TlsError::Pair { certificate: certificate.clone(), key: key.clone(), source };
        let provider = rustls::crypto::ring::default_provider();
        let certified = CertifiedKey::from_der(chain, private, &provider).map_err(pair)?;
        certified.keys_match().map_err(pair)?;
        Ok(certified)
    }
}

/// Whether other users may read the key.
fn is_readable_by_others(key: &Path) -> bool {
    fs::metadata(key).is_ok_and(|file| file.permissions().mode() & 0o004 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_to_the_server_come_from_many_loopback_addresses() {
        let addresses: Vec<_> = [0, 1, 255, 65_536, SOURCES - 1].map(source).into();
        for address in &addresses {
            assert!(address.ip().is_loopback(), "{address}");
            TcpListener::bind(address).unwrap();
        }
        assert_eq!(addresses[0].ip(), Ipv4Addr::LOCALHOST);
        assert_eq!(addresses[4].ip(), Ipv4Addr::new(127, 255, 255, 254));
    }
}
