//! The part of the OpenAPI document about the route of Durable Streams.

use utoipa::OpenApi;

use super::handlers::read;
use crate::error::Code;
use crate::refusals::{STORE, add_problems};

#[derive(OpenApi)]
#[openapi(info(title = "", description = ""), paths(read::read))]
struct DurableStreamsDocument;

/// The problems of a read that only some routes have.
const OWN: [Code; 2] = [Code::CursorMalformed, Code::CursorAhead];

/// Returns the part of the document about this route.
pub(in crate::vocabularies) fn document() -> utoipa::openapi::OpenApi {
    let mut document = DurableStreamsDocument::openapi();
    add_problems(&mut document, |_, _| [&OWN[..], &STORE].concat());
    document
}
