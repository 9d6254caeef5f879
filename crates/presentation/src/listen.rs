//! Serves the routes on a socket.

use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::time::Duration;

use actix_http::HttpService;
use actix_http::error::DispatchError;
use actix_service::{IntoServiceFactory as _, Service as _, apply_fn_factory, map_config};
use actix_web::dev::{AppConfig, Server};
use actix_web::rt::net::TcpStream;
use actix_web::web::ServiceConfig;

use crate::api::Api;
use crate::routes::app;
use crate::socket::{Idle, SocketLimits, Watch, Watched, set_limits};

/// Bounds of the HTTP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerLimits {
    /// How many threads carry connections.
    pub workers: usize,
    /// How many threads each of them may have for reading files and the database. What waits for a client runs on none
    /// of them, so a few are enough.
    pub blocking_threads: usize,
    /// Connections that are open at the same time.
    pub connections: usize,
    /// How long a client may take to send the head of a request.
    pub head_timeout: Duration,
    /// How long a connection waits for its next request.
    pub keep_alive: Duration,
    /// How long the rest of a body is read that is not there when its request is answered: the connection is closed
    /// then, but the client should read the answer first.
    pub rest_timeout: Duration,
    /// How many bytes of it are read.
    pub rest_bytes: usize,
    /// How long a client may take for each 64 KiB of an answer whose length is known, and of the rest of
    /// any other when all of it has been written.
    pub flush_timeout: Duration,
    /// How long connections may take to end when all that they wait for has ended, in seconds.
    pub close_timeout_s: u64,
    pub sockets: SocketLimits,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            // Each is cheap; the work of one token is done once for all of them.
            workers: 2,
            blocking_threads: 3,
            connections: 4096,
            head_timeout: Duration::from_secs(5),
            keep_alive: Duration::from_secs(75),
            rest_timeout: Duration::from_secs(1),
            rest_bytes: 1 << 20,
            flush_timeout: Duration::from_secs(20),
            // One that is not read must not keep the server from stopping.
            close_timeout_s: 2,
            sockets: SocketLimits::default(),
        }
    }
}

/// Serves the API, and `more` behind the same guard.
///
/// # Errors
/// The listener cannot be used.
pub fn listen(
    listener: TcpListener,
    api: Api,
    more: fn(&mut ServiceConfig),
    limits: ServerLimits,
) -> io::Result<Server> {
    let idle = Idle {
        keep_alive: limits.keep_alive,
        head: limits.head_timeout,
        rest_bytes: limits.rest_bytes,
        flush: limits.flush_timeout,
    };
    let builder = Server::build()
        .workers(limits.workers)
        .worker_max_blocking_threads(limits.blocking_threads)
        .max_concurrent_connections(limits.connections.div_ceil(limits.workers))
        .shutdown_timeout(limits.close_timeout_s)
        .disable_signals();
    let stopping = builder.graceful_shutdown_signal();
    let builder = builder.listen("http", listener, move || {
        let stopping = stopping.clone();
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .keep_alive(limits.keep_alive)
            .client_request_timeout(limits.head_timeout)
            .client_disconnect_timeout(limits.rest_timeout)
            // Who has gone is noticed when he goes, and not when something is written to him.
            .h1_allow_half_closed(false)
            .on_connect_ext(|connection: &Watched, of_connection| {
                of_connection.insert(Rc::clone(connection.watch()));
            })
            .h1(map_config(app(api.clone()).configure(more).into_factory(), |()| AppConfig::default()));
        apply_fn_factory(http, move |socket: TcpStream, http| {
            set_limits(&socket, limits.sockets);
            let peer = socket.peer_addr().ok();
            let watch = Rc::new(Watch::new(idle, socket));
            // In a box, so that all of it is free again when the connection only streams.
            let requests = Box::pin(http.call((Watched::new(Rc::clone(&watch)), peer)));
            async move {
                let answered = requests.await;
                match watch.streaming() {
                    // What else the client has sent to the dispatcher, and what that says of it, is of no matter.
                    Some(streaming) => streaming.run().await.map_err(DispatchError::Io),
                    None => answered,
                }
            }
        })
    })?;
    Ok(builder.run())
}
