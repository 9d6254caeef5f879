//! The files of the store: the data folder and its lock, connections, the schema, reserved disk space.

pub(crate) mod connection;
pub(crate) mod folder;
pub(crate) mod move_note;
pub(crate) mod reserve;
pub(crate) mod schema;
