//! What clients speak. Each vocabulary is one folder with all that is its own: the fold that makes its frames of
//! events, its wire names, its handlers and routes, and its part of the OpenAPI document.

mod ai_sdk;
mod kelpie;
mod letta;
pub(crate) mod native;

use actix_web::web::ServiceConfig;
use utoipa::openapi::OpenApi;

use crate::json::ItemList;

/// What a vocabulary adds to the server.
pub(crate) struct Foreign {
    pub(crate) routes: fn(&mut ServiceConfig),
    /// Its part of the OpenAPI document.
    pub(crate) document: fn() -> OpenApi,
    /// Its list in the record of a turn.
    pub(crate) record: Option<ItemList>,
}

/// Whose words the streams of Letta's routes carry too.
const GUEST: letta::Guest = letta::Guest { name: "kelpie", blocks: kelpie::blocks };

/// One line for each vocabulary with routes of its own, besides the native one.
pub(crate) const FOREIGN: &[Foreign] = &[
    Foreign { routes: ai_sdk::routes, document: ai_sdk::document, record: Some(ai_sdk::RECORD) },
    Foreign { routes: |config| letta::routes(config, GUEST), document: letta::document, record: None },
    #[cfg(test)]
    Foreign {
        routes: tests::telegraph::routes,
        document: tests::telegraph::document,
        record: Some(tests::telegraph::RECORD),
    },
];

#[cfg(test)]
mod tests;
