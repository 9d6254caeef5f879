use utoipa::OpenApi;

use super::handlers;
use crate::refusals::add_problems;

#[derive(OpenApi)]
#[openapi(paths(handlers::telegrams))]
struct TelegraphDocument;

pub(in crate::vocabularies) fn document() -> utoipa::openapi::OpenApi {
    let mut document = TelegraphDocument::openapi();
    add_problems(&mut document, |_, _| Vec::new());
    document
}
