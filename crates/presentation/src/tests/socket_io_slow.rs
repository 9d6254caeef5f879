//! Socket.IO for clients that read slowly.

use std::time::Duration;

use actix_http::ws::OpCode;

use super::client::serve_with;
use super::harness::Harness;
use super::socket_io_polling::{Poller, is_end, text, upgraded};
use crate::{ListenLimits, SocketLimits};

/// A page that the client reads for longer than a client may be silent, and than it has for a pong.
#[actix_web::test]
async fn a_slow_client_keeps_its_session_after_an_upgrade_while_it_reads() {
    let harness = Harness::with(|config, _| {
        config.ping = Duration::from_millis(200);
        config.socket_io_pong_timeout = Duration::from_millis(1500);
    });
    let sockets = SocketLimits { send_buffer_bytes: 16 << 10, ..SocketLimits::default() };
    let served = serve_with(&harness, ListenLimits { workers: 1, sockets, ..ListenLimits::default() });
    let words = vec!["x".repeat(2000); 500].join(" ");
    let id = harness.launch_to_end(&format!("say {words}")).await;
    let poller = Poller::connect(&harness).await;
    let mut client = upgraded(&served, &poller).await;
    client.buffer_little();
    client.send(OpCode::Text, format!("42[\"subscribe\",{{\"agentId\":\"{id}\"}}]").as_bytes()).await;
    let mut pings = 0;
    loop {
        let packet = text(&mut client).await;
        if packet == "2" {
            pings += 1;
            client.send(OpCode::Text, b"3").await;
        } else if is_end(&packet) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(2 < pings, "{pings}");
    served.handle.stop(false).await;
}
