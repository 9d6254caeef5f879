//! The routes, as the server itself describes them, so that new routes are tested automatically.

use crate::harness::TestServer;

/// A valid id that no agent has.
pub(crate) const UNKNOWN: &str = "01900000-0000-7000-8000-000000000000";

/// The paths that need no token.
pub(crate) const OPEN: [&str; 2] = ["/healthz", "/readyz"];

/// The method and path of every operation in the OpenAPI document.
pub(crate) async fn all(server: &TestServer) -> Vec<(String, String)> {
    let document = server.get("/openapi.json").await;
    let mut found = vec![("GET".to_owned(), "/openapi.json".to_owned())];
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            if ["get", "head", "post", "put", "patch", "delete"].contains(&method.as_str()) {
                let path = path.split('/').map(|part| if part.starts_with('{') { UNKNOWN } else { part });
                found.push((method.to_uppercase(), path.collect::<Vec<_>>().join("/")));
            }
        }
    }
    assert!(15 < found.len(), "the document describes the routes: {found:?}");
    found
}
