//! AG-UI's vocabulary, version 1.0: threads and runs over HTTP, with a cursor that works at any age. An agent is a
//! thread. A turn is a run, or several: a permission request ends a run, and the run that answers it goes on with the
//! turn.

mod cursor;
mod dto;
mod fold;
mod handlers;
mod interrupt_id;
mod openapi;
mod routes;
mod unsent_writer;

pub(super) use openapi::document;
pub(super) use routes::routes;
