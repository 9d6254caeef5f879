//! A WebSocket client that can send anything.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::harness::{PATIENCE, TestServer};

pub(crate) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

/// What the server has sent.
#[derive(Debug)]
pub(crate) enum Said {
    Frame(Value),
    /// The server has closed the connection with this code; `None` if it sent no code.
    Closed(Option<u16>),
}

impl Socket {
    pub(crate) async fn open(server: &TestServer, query: &str) -> Self {
        let mut request = format!("ws://{}/ws{query}", server.authority()).into_client_request().unwrap();
        let bearer = format!("Bearer {}", server.token()).parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
        Self(connect_async(request).await.unwrap().0)
    }

    pub(crate) async fn say(&mut self, kind: &str, payload: &Value) {
        self.send(Message::text(json!({ "type": kind, "payload": payload }).to_string())).await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: Message) -> Result<(), Error> {
        self.0.send(message).await
    }

    /// The next frame or close, without pings and pongs.
    pub(crate) async fn hear(&mut self) -> Said {
        loop {
            let message =
                timeout(PATIENCE, self.0.next()).await.expect("the server says something, or closes");
            match message {
                Some(Ok(Message::Text(text))) => return Said::Frame(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(frame))) => return Said::Closed(frame.map(|frame| frame.code.into())),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Said::Closed(None),
            }
        }
    }

    /// The next frame of this type.
    pub(crate) async fn hear_of(&mut self, kind: &str) -> Value {
        loop {
            match self.hear().await {
                Said::Frame(frame) if frame["type"] == kind => return frame["payload"].clone(),
                Said::Frame(_) => {}
                Said::Closed(code) => panic!("closed with {code:?} instead of {kind}"),
            }
        }
    }

    /// Waits for the close. Returns its code.
    pub(crate) async fn end(&mut self) -> Option<u16> {
        loop {
            if let Said::Closed(code) = self.hear().await {
                return code;
            }
        }
    }
}
