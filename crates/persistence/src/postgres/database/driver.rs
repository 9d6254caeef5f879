//! Sends and receives on a connection.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;
use tokio_postgres::error::Severity;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::{AsyncMessage, Connection, Notification, Socket};

/// Receives what the server sends after LISTEN. The task of the connection calls it, so it must not wait.
pub(crate) type Ear = Arc<dyn Fn(Notification) + Send + Sync>;

/// What the task of a connection reports.
pub(crate) struct Driver {
    /// How many warnings the server has sent.
    pub(crate) warnings: Arc<AtomicU64>,
    pub(crate) ear: Option<Ear>,
    /// Dropped when the connection ends.
    pub(crate) _end: watch::Sender<()>,
}

impl Driver {
    /// Sends and receives until the connection ends. A warning is counted before the answer that follows it is passed
    /// on.
    pub(crate) async fn run<S>(self, mut connection: Connection<Socket, S>)
    where
        S: TlsStream + Unpin,
    {
        while let Some(message) = poll_fn(|context| connection.poll_message(context)).await {
            match message {
                Ok(AsyncMessage::Notice(notice)) if notice.parsed_severity() == Some(Severity::Warning) => {
                    self.warnings.fetch_add(1, Ordering::Release);
                    tracing::warn!(code = notice.code().code(), "the PostgreSQL server sent a warning");
                }
                Ok(AsyncMessage::Notification(notification)) => {
                    if let Some(ear) = &self.ear {
                        ear(notification);
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::debug!(error, "a connection to the PostgreSQL server ended");
                    return;
                }
            }
        }
    }
}
