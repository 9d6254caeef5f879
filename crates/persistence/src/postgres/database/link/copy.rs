//! Many rows for one table.

use bytes::Bytes;
use tokio_postgres::{CopyInSink, Error};

use super::Link;

impl Link {
    /// Rows of a `COPY … FROM STDIN`. If the sink is dropped before its end, nothing of them is saved.
    pub(crate) async fn copy(&self, sql: &str) -> Result<CopyInSink<Bytes>, Error> {
        self.0.client.copy_in(sql).await
    }
}
