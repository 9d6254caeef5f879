//! The page: three files in the binary.

use actix_web::http::header;
use actix_web::{HttpResponse, web};
use tokenrail_presentation::page;

const HTML: &str = include_str!("../page/index.html");
const SCRIPT: &str = include_str!("../page/app.js");
const STYLE: &str = include_str!("../page/app.css");

/// Only its own files, only its own server; nothing that is said becomes HTML.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// The paths of the page: they hold no secret, so they need no token.
pub(crate) const PATHS: [&str; 4] = ["/", "/agents/*", "/app.js", "/app.css"];

/// Adds the page to the routes of the API.
pub(crate) fn routes(config: &mut web::ServiceConfig) {
    let html = || async { file("text/html; charset=utf-8", HTML) };
    config
        .service(page("/", html))
        .service(page("/agents/{id}", html))
        .service(page("/app.js", || async { file("text/javascript; charset=utf-8", SCRIPT) }))
        .service(page("/app.css", || async { file("text/css; charset=utf-8", STYLE) }));
}

fn file(kind: &str, text: &'static str) -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((header::CONTENT_TYPE, kind))
        .insert_header((header::CONTENT_SECURITY_POLICY, POLICY))
        .body(text)
}
