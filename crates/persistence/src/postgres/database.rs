//! The server: its address, connections and schema.

pub(crate) mod address;
pub(crate) mod link;
pub(crate) mod pool;
pub(crate) mod schema;
pub(crate) mod settings;
pub(crate) mod tls;
