//! OpenAI's vocabulary: the Responses API, with a cursor that works at any age, Chat Completions, and the list of
//! models. An agent is a conversation, and a turn is a response or a chat completion.

mod chunks;
mod dto;
mod fold;
mod handlers;
mod journal_text;
mod openapi;
mod pieces;
mod refusal;
mod response_id;
mod routes;
mod said_items;
mod unsent_writer;
mod writer;

pub(super) use openapi::document;
pub(super) use refusal::REFUSALS;
pub(super) use routes::routes;
