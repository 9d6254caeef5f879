//! A handler that panics, for tests of the response to a panic. The route exists only if
//! [`PresentationConfig::test_routes`](crate::PresentationConfig::test_routes) is set.

use actix_web::HttpResponse;
use actix_web::web::Path;

/// Panics with these words.
#[expect(clippy::panic, reason = "that is what it is for")]
pub(crate) async fn panic(words: Path<String>) -> HttpResponse {
    panic!("{words}")
}
