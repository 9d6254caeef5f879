//! Fails as no handler should: for tests of what a fault of this program leaves behind. It is there only where
//! [`PresentationConfig::test_routes`](crate::PresentationConfig::test_routes) says so.

use actix_web::HttpResponse;
use actix_web::web::Path;

/// Panics with these words.
#[expect(clippy::panic, reason = "that is what it is for")]
pub(crate) async fn panic(words: Path<String>) -> HttpResponse {
    panic!("{words}")
}
