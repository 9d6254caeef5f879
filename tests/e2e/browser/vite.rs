//! Vite's dev server, with the page of `tests/clients/vite` and a proxy to a Tokenrail server.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use tempfile::TempDir;

use super::tab::{Browser, Look, Tab};
use crate::harness::{PATIENCE, TestServer, free_port};
use crate::real_clients::{clients, node};

/// A dev server. It ends when it is dropped.
pub(super) struct Vite {
    process: Child,
    port: u16,
    _cache: TempDir,
}

impl Vite {
    /// Starts it on a port, and waits until it responds.
    pub(super) async fn start(port: u16, server: &TestServer, change_origin: bool) -> Self {
        let cache = tempfile::tempdir().unwrap();
        let process = Command::new(node(&clients()))
            .arg(clients().join("page/node_modules/vite/bin/vite.js"))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/vite"))
            .args(["--host", "127.0.0.1", "--strictPort", "--port", &port.to_string()])
            .env("TARGET", format!("http://{}", server.authority()))
            .env("CHANGE_ORIGIN", change_origin.to_string())
            .env("CLIENTS", clients())
            .env("CACHE", cache.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let vite = Self { process, port, _cache: cache };
        let started = Instant::now();
        while server.http.get(vite.url("127.0.0.1")).send().await.is_err() {
            assert!(started.elapsed() < PATIENCE, "Vite does not serve");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        vite
    }

    /// Its address with one of its host names, which are different origins.
    pub(super) fn url(&self, host: &str) -> String {
        format!("http://{host}:{}", self.port)
    }

    /// A tab that shows its page.
    pub(super) async fn tab(&self, browser: &Browser, host: &str) -> Tab {
        let tab = browser.tab(Look::default()).await;
        tab.visit(&self.url(host)).await;
        tab.until("window.page !== undefined").await;
        tab
    }
}

impl Drop for Vite {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A port for a dev server that is started later.
pub(super) fn port() -> u16 {
    free_port()
}
