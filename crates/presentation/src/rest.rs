//! REST. Each handler reads the request, calls one use case, and writes the answer.

mod agents;
mod copies;
mod events;
mod panic;
mod permissions;
mod problems;
mod service;
mod turns;

pub(crate) use agents::{active, cancel, delete, get, launch, list, status};
pub(crate) use copies::{export, replay, take_in};
pub(crate) use events::{events, messages, send};
pub(crate) use panic::panic;
pub(crate) use permissions::permission;
pub(crate) use problems::problem;
pub(crate) use service::{health, metrics, ready, ticket, types};
pub(crate) use turns::{turn, turns};

// The OpenAPI document names handlers by these companions.
pub(crate) use agents::{
    __path_active, __path_cancel, __path_delete, __path_get, __path_launch, __path_list, __path_status,
};
pub(crate) use copies::{__path_export, __path_replay, __path_take_in};
pub(crate) use events::{__path_events, __path_messages, __path_send};
pub(crate) use permissions::__path_permission;
pub(crate) use problems::__path_problem;
pub(crate) use service::{__path_health, __path_metrics, __path_ready, __path_ticket, __path_types};
pub(crate) use turns::{__path_turn, __path_turns};
