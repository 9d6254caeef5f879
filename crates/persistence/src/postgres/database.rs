//! The server: its address, connections and schema.

pub(crate) mod address;
pub(crate) mod connector;
pub(crate) mod driver;
pub(crate) mod failures;
pub(crate) mod known_server;
pub(crate) mod link;
pub(crate) mod migration;
pub(crate) mod opening_places;
pub(crate) mod pooler;
pub(crate) mod schema;
pub(crate) mod settings;
pub(crate) mod steps;
pub(crate) mod tls;
