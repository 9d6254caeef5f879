//! Where a request comes from: the checks against DNS rebinding and against other sites' pages.

use actix_web::http::header::{self, HeaderMap};
use actix_web::http::uri::Authority;

use crate::config::PresentationConfig;
use crate::error::{Code, Problem};

/// Checks `Host` and the authority of the request's target: what a rebound name cannot forge.
pub(crate) fn check_host(
    config: &PresentationConfig,
    headers: &HeaderMap,
    target: Option<&Authority>,
) -> Result<(), Problem> {
    let mut hosts = headers.get_all(header::HOST);
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let known = |host: &str| config.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host));
    let good = host.is_some_and(known) && hosts.next().is_none();
    if good && target.is_none_or(|target| known(target.as_str())) {
        return Ok(());
    }
    Err(Problem::new(Code::HostNotAllowed, "the Host header is not in server.allowed_hosts"))
}

/// Checks `Origin` and `Sec-Fetch-Site`: what another site's page cannot leave out.
pub(crate) fn check_origin(config: &PresentationConfig, headers: &HeaderMap) -> Result<(), Problem> {
    let refused = || Problem::new(Code::OriginNotAllowed, "the Origin is not in server.allowed_origins");
    let mut origins = headers.get_all(header::ORIGIN).peekable();
    if origins.peek().is_some() {
        let known = |origin: &str| is_allowed_origin(config, origin);
        let all_known = origins.all(|origin| origin.to_str().is_ok_and(known));
        return if all_known { Ok(()) } else { Err(refused()) };
    }
    let own = |site: &header::HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    if headers.get_all("sec-fetch-site").all(own) { Ok(()) } else { Err(refused()) }
}

fn is_allowed_origin(config: &PresentationConfig, origin: &str) -> bool {
    let own = ["http://", "https://"].iter().any(|scheme| {
        let host = origin.strip_prefix(scheme);
        host.is_some_and(|host| config.allowed_hosts.iter().any(|own| own.eq_ignore_ascii_case(host)))
    });
    // `null` is what sandboxed and local pages send: it says nothing about who they are.
    own || (origin != "null" && config.allowed_origins.iter().any(|allowed| allowed == origin))
}
