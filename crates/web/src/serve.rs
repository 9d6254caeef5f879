//! One file of the page as an answer.

use std::borrow::Cow;

use actix_web::http::header::{self, EntityTag, Header, IfNoneMatch};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use rust_embed::{EmbeddedFile, RustEmbed};

/// Only its own files, only its own server; nothing that is said becomes HTML.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types 'none'";

/// A new server has new files under the same names: a browser asks each time, and mostly hears 304.
const ASK_EACH_TIME: &str = "no-cache";

/// The file of every view of the page.
const PAGE: &str = "index.html";

/// Where the page is, as patterns of routes. What is no file of its own is one view of the page.
pub const PATHS: [&str; 10] = [
    "/",
    "/agents/{id}",
    "/app.js",
    "/runtime.js",
    "/dom.js",
    "/view.js",
    "/languages.js",
    "/app.css",
    "/icon.svg",
    "/icon-waiting.svg",
];

/// The same paths, as they come: a `*` stands for anything. They hold no secret, so they need no token.
pub fn open_paths() -> Vec<String> {
    PATHS.map(|path| path.replace("{id}", "*")).into()
}

/// The page of a server that clients reach below a path.
#[derive(Debug, Clone)]
pub struct BasePath(String);

impl BasePath {
    /// `path` has no slash at its end. It is empty for the root.
    pub fn new(path: impl Into<String>) -> Self {
        Self(path.into())
    }

    /// The page with the addresses of its files below this path.
    fn apply(&self, page: &[u8]) -> Vec<u8> {
        let page = String::from_utf8_lossy(page);
        page.replace("href=\"/", &format!("href=\"{}/", self.0))
            .replace("src=\"/", &format!("src=\"{}/", self.0))
            .into()
    }
}

#[derive(RustEmbed)]
#[folder = "page/dist/"]
struct Built;

/// Answers a request for one of [`PATHS`].
///
/// The body is there for `HEAD` too: the server leaves it out, and knows its length by it.
pub async fn serve(request: HttpRequest) -> HttpResponse {
    let name = match request.path() {
        "/app.js" => "app.js",
        "/runtime.js" => "runtime.js",
        "/dom.js" => "dom.js",
        "/view.js" => "view.js",
        "/languages.js" => "languages.js",
        "/app.css" => "app.css",
        "/icon.svg" => "icon.svg",
        "/icon-waiting.svg" => "icon-waiting.svg",
        _ => PAGE,
    };
    match Built::get(name) {
        Some(file) => answer(&request, name, file),
        None => HttpResponse::NotFound().finish(),
    }
}

/// Answers a browser that opens a path that is no page. The page then says so.
pub fn missing(request: &HttpRequest) -> HttpResponse {
    let Some(file) = Built::get(PAGE) else { return HttpResponse::NotFound().finish() };
    let base = request.app_data::<BasePath>().filter(|base| !base.0.is_empty());
    let page = match base {
        Some(base) => base.apply(&file.data).into(),
        None => body(file.data),
    };
    HttpResponse::NotFound()
        .insert_header((header::CACHE_CONTROL, ASK_EACH_TIME))
        .insert_header((header::CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((header::CONTENT_TYPE, content_type(PAGE)))
        .body(page)
}

fn answer(request: &HttpRequest, name: &str, mut file: EmbeddedFile) -> HttpResponse {
    let base = request.app_data::<BasePath>().filter(|base| name == PAGE && !base.0.is_empty());
    let tag = tag(&file, base);
    let known = is_known(request, &tag);
    let mut answer = if known { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    answer
        .insert_header((header::ETAG, tag.to_string()))
        .insert_header((header::CACHE_CONTROL, ASK_EACH_TIME))
        .insert_header((header::CONTENT_SECURITY_POLICY, POLICY));
    if known {
        return answer.finish();
    }
    if let Some(base) = base {
        file.data = base.apply(&file.data).into();
    }
    answer.insert_header((header::CONTENT_TYPE, content_type(name))).body(body(file.data))
}

/// The bytes as they are in the program: nothing is copied.
fn body(data: Cow<'static, [u8]>) -> Bytes {
    match data {
        Cow::Borrowed(bytes) => Bytes::from_static(bytes),
        Cow::Owned(bytes) => bytes.into(),
    }
}

/// Whether the browser has these very bytes already.
fn is_known(request: &HttpRequest, tag: &EntityTag) -> bool {
    match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Items(known)) => known.iter().any(|known| known.weak_eq(tag)),
        // `*`: any version will do. A header that is not there reads as an empty list.
        Ok(IfNoneMatch::Any) => true,
        Err(_) => false,
    }
}

/// The version of the file: its hash, and the base path that it contains.
fn tag(file: &EmbeddedFile, base: Option<&BasePath>) -> EntityTag {
    let digits = file.metadata.sha256_hash().into_iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let mut version: String = digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect();
    version.extend(base.iter().flat_map(|base| base.0.chars()));
    EntityTag::new_strong(version)
}

fn content_type(name: &str) -> &'static str {
    match name {
        "app.js" | "runtime.js" | "dom.js" | "view.js" | "languages.js" => "text/javascript; charset=utf-8",
        "app.css" => "text/css; charset=utf-8",
        "icon.svg" | "icon-waiting.svg" => "image/svg+xml",
        _ => "text/html; charset=utf-8",
    }
}
