//! An endpoint that only a flag for tests enables.

use crate::harness::TestServer;
use crate::raw::{self, HANDSHAKE};

#[tokio::test]
async fn nobody_is_echoed_unless_the_server_was_started_for_that() {
    let mut server = TestServer::start();
    let echo = raw::request(&server, "GET", "/ws/echo", &HANDSHAKE);
    assert_eq!(raw::send(&server, &echo).await.unwrap().status, 404);
    server.kill_9();
    let command = server.command(&["serve", "--test-routes"]);
    server.start_by(command).unwrap();
    let echo = raw::request(&server, "GET", "/ws/echo", &HANDSHAKE);
    assert_eq!(raw::send(&server, &echo).await.unwrap().status, 101);
    let stranger = format!("GET /ws/echo HTTP/1.1\r\nHost: {}\r\n\r\n", server.authority());
    assert_eq!(raw::send(&server, stranger).await.unwrap().status, 401, "it asks for the token as all do");
}
