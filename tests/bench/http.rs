//! HTTP requests, each over its own connection.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Failure;

/// The address of a server, and its token.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

impl Place {
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        Ok(serde_json::from_str(&self.read(path).await?)?)
    }

    /// The text of an answer. To parse it takes a client longer than a server needs to write it.
    pub(crate) async fn read(&self, path: &str) -> Result<String, Failure> {
        self.call("GET", path, "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        Ok(serde_json::from_str(&self.call("POST", path, &body.to_string()).await?)?)
    }

    /// A number from the metrics of the server.
    pub(crate) async fn metric(&self, name: &str) -> Result<f64, Failure> {
        let text = self.call("GET", "/metrics", "").await?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        value.ok_or_else(|| format!("no metric {name}").into())
    }

    async fn call(&self, method: &str, path: &str, body: &str) -> Result<String, Failure> {
        let mut stream = TcpStream::connect(self.address).await?;
        let headers =
            format!("Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}", body.len());
        stream.write_all(format!("{}{body}", self.head(method, path, &headers)).as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("an answer without an end of its head")?;
        if !head.starts_with("HTTP/1.1 2") {
            return Err(format!("{method} {path}: {answer}").into());
        }
        Ok(body.to_owned())
    }

    /// The head of a request.
    pub(crate) fn head(&self, method: &str, path: &str, headers: &str) -> String {
        let Self { address, token } = self;
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{headers}\r\n\r\n"
        )
    }
}
