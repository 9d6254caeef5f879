//! `/openapi.json`: the OpenAPI document of the REST API.

use std::sync::OnceLock;

use actix_web::HttpResponse;
use utoipa::OpenApi;
use utoipa::openapi::security::{
    ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
};

use crate::error::{FieldProblem, ProblemDto};
use crate::vocabularies::FOREIGN;
use crate::vocabularies::native::{endpoints, socket_io};

/// The operations add the types of their requests and responses. No operation names the types of problems.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Tokenrail",
        description = "Run AI agents, save their output as they print it, and stream it live to any number of clients."
    ),
    components(schemas(FieldProblem, ProblemDto))
)]
struct Document;

/// Returns the document, which is generated once.
pub(crate) async fn document() -> HttpResponse {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| {
        let mut document = Document::openapi();
        document.merge(endpoints::document());
        document.merge(socket_io::document());
        for vocabulary in FOREIGN {
            document.merge((vocabulary.document)());
        }
        require_token(&mut document);
        document.to_json().unwrap_or_default()
    });
    HttpResponse::Ok().content_type("application/json").body(text.as_str())
}

/// Declares that every operation needs a token, except the probes and the pages of problems.
fn require_token(document: &mut utoipa::openapi::OpenApi) {
    let components = document.components.get_or_insert_default();
    components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    let none: [&str; 0] = [];
    components
        .add_security_scheme("key", SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("X-Api-Key"))));
    document.security = Some(["token", "key"].map(|scheme| SecurityRequirement::new(scheme, none)).into());
    for path in ["/healthz", "/readyz", "/problems/{code}"] {
        if let Some(get) = document.paths.paths.get_mut(path).and_then(|item| item.get.as_mut()) {
            get.security = Some(Vec::new());
        }
    }
}
