//! `/problems/<code>`: the page to which the `type` of a problem links.

use actix_web::{HttpResponse, web};

use crate::error::{Code, Problem};

/// Read the documentation of a problem code
#[utoipa::path(get, path = "/problems/{code}", tag = "service", params(("code" = String, Path)),
    responses((status = 200, body = String, content_type = "text/html")))]
pub(crate) async fn problem(code: web::Path<String>) -> Result<HttpResponse, Problem> {
    let found = Code::ALL.iter().find(|known| known.as_str() == code.as_str());
    let code = found.copied().ok_or_else(Problem::not_found)?;
    Ok(HttpResponse::Ok().content_type("text/html; charset=utf-8").body(page(code)))
}

fn page(code: Code) -> String {
    let (word, title, status) = (code.as_str(), code.title(), code.status());
    let retry = if code.retryable() {
        "The same request may succeed later."
    } else {
        "Sending the same request again does not help, unless its cause is removed."
    };
    let when = with_code(code.when());
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{word}</title>\n\
         <h1>{title}</h1>\n<p><code>{word}</code>, status {status}</p>\n<p>{when}</p>\n<p>{retry}</p>\n</html>\n"
    )
}

/// Turns backticks into `<code>`. The sentences are constants that need no escaping, which a test checks.
fn with_code(sentence: &str) -> String {
    let parts = sentence.split('`').enumerate();
    parts
        .map(|(at, part)| if at % 2 == 0 { part.to_owned() } else { format!("<code>{part}</code>") })
        .collect()
}
