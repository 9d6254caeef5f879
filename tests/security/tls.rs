//! S27 with TLS in front of the server.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use reqwest::{Certificate, Client};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::harness::{PATIENCE, TestServer, fake_config};

const CONNECTIONS: usize = 8;

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/tls").join(name)
}

/// A TLS connection that does only what the test says: it does not answer the end of the connection by itself.
fn connect(server: &TestServer) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(fixture("ca.pem")).unwrap()).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(server.authority()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    StreamOwned::new(connection, socket)
}

/// Each client has the response, and then neither sends nor closes anything. A place for a connection is free only if
/// the server does not wait for its client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s27_clients_that_never_end_a_tls_connection_keep_nobody_out() {
    let (certificate, key) = (fixture("first.pem"), fixture("first.key"));
    let server = TestServer::start_with(&format!(
        "[server]\ntls_cert = {certificate:?}\ntls_key = {key:?}\n{}[limits]\nconnections = {CONNECTIONS}\n",
        fake_config()
    ));
    let idle: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut connection = connect(&server);
            let host = server.authority();
            let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
            connection.write_all(request.as_bytes()).unwrap();
            let mut head = [0; 12];
            connection.read_exact(&mut head).unwrap();
            assert_eq!(&head, b"HTTP/1.1 200");
            connection
        })
        .collect();

    let authority = Certificate::from_pem(&std::fs::read(fixture("ca.pem")).unwrap()).unwrap();
    let another =
        Client::builder().no_proxy().timeout(PATIENCE).add_root_certificate(authority).build().unwrap();
    let asked = another.get(format!("https://{}/healthz", server.authority())).send();
    assert_eq!(asked.await.expect("another client is served").status(), 200);
    drop(idle);
}
