//! The vocabularies that clients speak: one folder for each. A folder contains everything that belongs to one
//! vocabulary: the fold that turns events into frames, its wire names, its handlers and routes, and its part of the
//! OpenAPI document. Only kelpie has no routes of its own: streams of Letta's routes carry it.
//!
//! Two folders are not vocabularies, but parts that several of them use: `prompts` receives a prompt, `turns` shows a
//! turn.
//!
//! A *dialect* is less than a vocabulary: one of the three sets of frames of the native WebSocket, `agent`, `message`
//! and `stream`. Their folds are in `native/dialects`.

mod ag_ui;
mod ai_sdk;
mod durable_streams;
mod kelpie;
mod letta;
mod mcp;
pub(crate) mod native;
mod openai;
pub(crate) mod prompts;
pub(crate) mod turns;

use actix_web::web::ServiceConfig;
use utoipa::openapi::OpenApi;

use crate::foreign_refusals::ForeignRefusals;
use crate::json::ItemList;

/// The parts that a vocabulary adds to the server.
pub(crate) struct Foreign {
    pub(crate) routes: fn(&mut ServiceConfig),
    /// The vocabulary's part of the OpenAPI document.
    pub(crate) document: fn() -> OpenApi,
    /// The vocabulary's list in the record of a turn. `None` if it has none.
    pub(crate) record: Option<ItemList>,
    /// The format of the vocabulary's errors. `None` if it has Tokenrail's own, or if its handlers write them.
    pub(crate) refusals: Option<ForeignRefusals>,
}

/// The second vocabulary that the streams of Letta's routes can carry.
const GUEST: letta::Guest = letta::Guest { name: "kelpie", blocks: kelpie::blocks };

/// The messages of a journal that is read as a stream: the same JSON as that of native events.
const MESSAGES: durable_streams::StreamMessages =
    durable_streams::StreamMessages { of_events: native::items_of_events, of_page: native::items_of_page };

/// One entry for each vocabulary that has its own routes, except the native one.
pub(crate) const FOREIGN: &[Foreign] = &[
    Foreign { routes: ag_ui::routes, document: ag_ui::document, record: None, refusals: None },
    Foreign {
        routes: ai_sdk::routes,
        document: ai_sdk::document,
        record: Some(ai_sdk::RECORD),
        refusals: None,
    },
    // Before Letta, which refuses all other paths below `/v1`.
    Foreign {
        routes: |config| durable_streams::routes(config, MESSAGES),
        document: durable_streams::document,
        record: None,
        refusals: None,
    },
    Foreign {
        routes: |config| letta::routes(config, GUEST),
        document: letta::document,
        record: None,
        refusals: None,
    },
    Foreign {
        routes: openai::routes,
        document: openai::document,
        record: None,
        refusals: Some(openai::REFUSALS),
    },
    Foreign { routes: mcp::routes, document: mcp::document, record: None, refusals: Some(mcp::REFUSALS) },
    #[cfg(test)]
    Foreign {
        routes: tests::telegraph::routes,
        document: tests::telegraph::document,
        record: Some(tests::telegraph::RECORD),
        refusals: None,
    },
];

#[cfg(test)]
mod tests;
