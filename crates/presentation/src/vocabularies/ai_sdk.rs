//! The AI SDK's vocabulary: chats whose responses are UI message streams, over HTTP and over a WebSocket.

mod chat;
mod dto;
mod fold;
mod handlers;
mod history;
mod intake;
mod message;
mod openapi;
mod routes;
mod run_id;
mod socket;
mod stream;
mod writer;

pub(super) use openapi::document;
pub(super) use routes::routes;

use crate::json::ItemList;

/// The turn as UI message chunks: the same chunks that `/api/chat` streams to a client that names no version.
pub(super) const RECORD: ItemList = ItemList {
    name: "aiSDKChunks",
    items: |agent, turn| Box::new(fold::AiSdkFold::new(agent, turn, fold::SdkVersion::Any)),
};
