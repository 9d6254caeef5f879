//! Serves the routes on a TCP listener.
//!
//! actix's dispatcher serves the requests of a connection. If the guard takes the socket for a stream, `websocket.rs`
//! lists the steps.

use std::io;
use std::net::TcpListener;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use actix_http::HttpService;
use actix_http::error::DispatchError;
use actix_service::{IntoServiceFactory as _, Service as _, apply_fn_factory, map_config};
use actix_web::dev::{AppConfig, Server};
use actix_web::rt::net::TcpStream;
use actix_web::web::ServiceConfig;
use futures_util::FutureExt as _;
use tokio::runtime::Handle;

use crate::api::Api;
use crate::forwarded::Forwarded;
use crate::routes::app;
use crate::socket::{Idle, SocketLimits, Streams, Watch, Watched, set_limits};

/// Limits of the HTTP server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenLimits {
    /// Number of threads that serve connections.
    pub workers: usize,
    /// Number of threads that each worker may have for reading files and the database. Nothing that waits for a client
    /// runs on them, so a few are enough.
    pub worker_blocking_threads: usize,
    /// Maximum number of open connections (`limits.connections`, which also bounds open streams).
    pub connections: usize,
    /// How long a client may take to send the head of a request.
    pub head_timeout: Duration,
    /// How long an idle connection waits for its next request.
    pub keep_alive: Duration,
    /// After an early response, the server keeps reading the request's body for this long before it closes. So the
    /// client can read the response.
    pub unread_body_timeout: Duration,
    /// Maximum number of bytes that are read of this body then.
    pub unread_body_bytes: usize,
    /// How long a client may take for each 64 KiB of a response whose length is known. For any other response, this
    /// applies to the part that is unsent when the response is complete.
    pub flush_timeout: Duration,
    /// How long connections may take to close at shutdown, after everything that they wait for has ended, in seconds.
    pub close_timeout_s: u64,
    pub sockets: SocketLimits,
}

impl Default for ListenLimits {
    fn default() -> Self {
        Self {
            // Two are enough: connections are cheap, because the work for a token is done once for all of them. On one
            // processor, a second one would only take turns with the first.
            workers: thread::available_parallelism().map_or(2, |processors| processors.get().min(2)),
            worker_blocking_threads: 3,
            connections: 4096,
            head_timeout: Duration::from_secs(5),
            keep_alive: Duration::from_secs(75),
            unread_body_timeout: Duration::from_secs(1),
            unread_body_bytes: 1 << 20,
            flush_timeout: Duration::from_secs(20),
            // A connection whose client does not read must not keep the server from stopping.
            close_timeout_s: 2,
            sockets: SocketLimits::default(),
        }
    }
}

impl ListenLimits {
    fn idle(&self) -> Idle {
        Idle {
            keep_alive: self.keep_alive,
            head: self.head_timeout,
            unread_body_bytes: self.unread_body_bytes,
            flush: self.flush_timeout,
        }
    }
}

/// Serves the API and the routes of `more`, behind the same guard. `forwarded` knows the clients of connections that
/// are passed on. Must be called on the runtime of the application.
///
/// # Errors
/// The listener cannot be used.
pub fn listen(
    listener: TcpListener,
    api: Api,
    forwarded: Forwarded,
    more: impl Fn(&mut ServiceConfig) + Clone + Send + 'static,
    limits: ListenLimits,
) -> io::Result<Server> {
    let idle = limits.idle();
    let builder = Server::build()
        .workers(limits.workers)
        .worker_max_blocking_threads(limits.worker_blocking_threads)
        .max_concurrent_connections(limits.connections.div_ceil(limits.workers))
        .shutdown_timeout(limits.close_timeout_s)
        .disable_signals();
    let stopping = builder.graceful_shutdown_signal();
    let runtime = Handle::current();
    let builder = builder.listen("http", listener, move || {
        let (stopping, forwarded) = (stopping.clone(), forwarded.clone());
        let http = HttpService::build()
            .graceful_shutdown_signal(move || {
                let stopping = stopping.clone();
                async move { stopping.notified().await }
            })
            .keep_alive(limits.keep_alive)
            .client_request_timeout(limits.head_timeout)
            .client_disconnect_timeout(limits.unread_body_timeout)
            // Detect at once that a client has disconnected, and not only at the next write.
            .h1_allow_half_closed(false)
            .on_connect_ext(|connection: &Watched, of_connection| {
                of_connection.insert(Rc::clone(connection.watch()));
            })
            .h1(map_config(app(api.clone()).configure(more.clone()).into_factory(), |()| {
                AppConfig::default()
            }));
        // Each worker calls this once, on its own thread.
        let streams = Streams::start(&runtime);
        apply_fn_factory(http, move |socket: TcpStream, http| {
            set_limits(&socket, limits.sockets);
            let peer = socket.peer_addr().ok().map(|from| forwarded.client(from));
            let watch = Rc::new(Watch::new(idle, socket));
            // Boxed, so that its memory is freed when the connection only streams.
            let requests = Box::pin(http.call((Watched::new(Rc::clone(&watch)), peer)));
            let streams = streams.clone();
            async move {
                let answered = requests.await;
                match watch.take_streaming() {
                    // Ignore the dispatcher's result: it concerns only input that the stream does not need.
                    Some(streaming) => {
                        streams.run(streaming.run().boxed_local()).await.map_err(DispatchError::Io)
                    }
                    None => answered,
                }
            }
        })
    })?;
    Ok(builder.run())
}
