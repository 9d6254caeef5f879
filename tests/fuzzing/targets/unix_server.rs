//! A real server on a Unix socket, for targets that need connections.

use std::path::PathBuf;
use std::sync::OnceLock;

use actix_web::{HttpServer, rt};
use tokenrail_presentation::app;

use super::world;

/// The server for all threads, on a Unix socket in a folder.
pub(super) fn server() -> &'static PathBuf {
    static SERVER: OnceLock<PathBuf> = OnceLock::new();
    SERVER.get_or_init(|| {
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            rt::System::new().block_on(async move {
                let folder = tempfile::tempdir().expect("a folder");
                let path = folder.path().join("socket");
                let (api, _service, _store) = world::api();
                let server = HttpServer::new(move || app(api.clone())).workers(1).disable_signals();
                let running = server.bind_uds(&path).expect("it can listen").run();
                tell.send(path).expect("somebody waits");
                running.await.expect("it runs");
            });
        });
        told.recv().expect("it has started")
    })
}
