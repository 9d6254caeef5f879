//! OpenAI's vocabulary: the Responses API, with a cursor that works at any age, Chat Completions, and the list of
//! models. An agent is a conversation, and a turn is a response or a chat completion.

mod chunks;
mod dto;
mod fold;
mod handlers;
mod openapi;
mod refusal;
mod response_id;
mod rest;
mod routes;
mod writer;

pub(super) use openapi::document;
pub(super) use refusal::REFUSALS;
pub(super) use routes::routes;
