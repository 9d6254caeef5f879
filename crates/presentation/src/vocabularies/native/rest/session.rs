//! The session of a browser: its start, its end, and the one-time codes that start it.

use std::time::Duration;

use actix_web::http::header::{self, HeaderMap};
use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_domain::Timestamp;

use crate::api::Api;
use crate::error::{Code, Problem};
use crate::guard::{comes_from_own_page, has_token_in_header};
use crate::json::IsoTime;
use crate::peer::peer;
use crate::query;
use crate::sessions::Transport;
use crate::vocabularies::native::dto;
use crate::vocabularies::native::dto::agent::LoginCodeDto;
use crate::vocabularies::native::dto::requests::SessionBody;

/// Maximum bytes of the body that starts a session, and how long it may take to arrive. Clients without a token may
/// send one, so these limits are narrower than those of other requests.
const SESSION_BYTES: usize = 1 << 10;
const SESSION_TIMEOUT: Duration = Duration::from_secs(2);

const OTHER_PAGE: &str =
    "only a page of this server can have a session; a page of another origin must send the token or a ticket";

/// Start a session: set a cookie that is accepted instead of the token
#[utoipa::path(post, path = "/api/session", tag = "service", request_body = Option<SessionBody>,
    responses((status = 204, description = "The session cookie is set. The request must have the token in \
         `Authorization` or `X-Api-Key`, or a login code in its body")))]
pub(crate) async fn start(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let config = api.config();
    if !comes_from_own_page(config, request.headers()) {
        return Err(Problem::new(Code::OriginNotAllowed, OTHER_PAGE));
    }
    let body = query::optional_body_within(&request, payload, SESSION_BYTES, SESSION_TIMEOUT).await?;
    let code = body.map(|body| dto::requests::login_code(&body, config.json_depth)).transpose()?.flatten();
    match code {
        _ if has_token_in_header(config, request.headers()) => {}
        Some(code) if api.redeem_login_code(&code).await? => {}
        Some(_) => return Err(api.failed_login(peer(request.peer_addr()))),
        None => return Err(Problem::unauthenticated()),
    }
    let cookie = api.sessions().start(api.random(), api.service().now(), transport(request.headers()));
    Ok(HttpResponse::NoContent().insert_header((header::SET_COOKIE, cookie)).finish())
}

/// End the session: make the browser forget its cookie
#[utoipa::path(delete, path = "/api/session", tag = "service",
    responses((status = 204, description = "The browser forgets the session cookie")))]
pub(crate) async fn end(api: web::Data<Api>, request: HttpRequest) -> HttpResponse {
    let cookie = api.sessions().end(transport(request.headers()));
    HttpResponse::NoContent().insert_header((header::SET_COOKIE, cookie)).finish()
}

/// Create a login code for a link to the page
#[utoipa::path(post, path = "/api/session/codes", tag = "service",
    responses((status = 201, body = LoginCodeDto, description = "A code that starts one session. The \
         request must have the token: a session cannot create a code")))]
pub(crate) async fn code(api: web::Data<Api>) -> Result<HttpResponse, Problem> {
    let expires = Timestamp(api.service().now().0 + api.config().login_code_age.as_millis() as i64);
    let code = api.issue_login_code().await?;
    Ok(HttpResponse::Created().json(LoginCodeDto { code: &code, expires_at: IsoTime(expires) }))
}

/// TLS ends before the requests arrive here. But a browser that uses it says so in `Origin`.
fn transport(headers: &HeaderMap) -> Transport {
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    if origin.is_some_and(|origin| origin.starts_with("https://")) {
        Transport::Tls
    } else {
        Transport::Plain
    }
}
