//! REST. Each handler reads the request, calls one use case, and writes the response. `use_cases.rs` of the application
//! crate says in which file a use case is: most often in that of its name.

pub(crate) mod agents;
pub(crate) mod changes;
pub(crate) mod copies;
pub(crate) mod events;
pub(crate) mod images;
pub(crate) mod nodes;
pub(crate) mod panic;
pub(crate) mod permissions;
pub(crate) mod problems;
mod prompt;
pub(crate) mod questions;
pub(crate) mod service;
pub(crate) mod session;
pub(crate) mod turns;
