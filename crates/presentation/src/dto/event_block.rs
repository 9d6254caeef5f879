//! What the OpenAPI document says of event streams.

use utoipa::ToSchema;

/// One block of an event stream, as it is read.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it describes streams in the OpenAPI document; blocks are written by hand")]
pub(crate) struct EventBlock {
    #[schema(nullable = false)]
    event: Option<String>,
    /// The cursor, where the stream has one.
    #[schema(nullable = false)]
    id: Option<String>,
    /// JSON, or `[DONE]`.
    data: String,
}
