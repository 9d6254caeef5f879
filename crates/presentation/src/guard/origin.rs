//! Checks the host and the origin of a request, against DNS rebinding and against pages of other sites.

use actix_web::http::header::{self, HeaderMap, HeaderValue};
use actix_web::http::uri::Authority;

use crate::config::PresentationConfig;
use crate::error::{Code, Problem};

/// Maximum length of a host or origin that an error repeats to the client, in bytes: a DNS name with scheme and port.
const NAME_BYTES: usize = 270;

/// Checks `Host` and the authority of the request's target. DNS rebinding cannot forge them.
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
    let host = host.filter(|host| target.is_none() && !known(host) && is_plain(host));
    let detail = match host {
        Some(host) => format!(
            "the host {host:?} is not allowed: behind a proxy, set server.public_url to the address that \
             browsers use; otherwise add the host, exactly as it is written here, to server.allowed_hosts (with \
             Vite's proxy, set changeOrigin: true instead)"
        ),
        None => "send exactly one Host header that names this server, or a host in server.allowed_hosts"
            .to_owned(),
    };
    Err(Problem::new(Code::HostNotAllowed, detail))
}

/// Checks `Origin` and `Sec-Fetch-Site`, which a page of another site cannot omit.
pub(crate) fn check_origin(config: &PresentationConfig, headers: &HeaderMap) -> Result<(), Problem> {
    let refused = |detail: String| Problem::new(Code::OriginNotAllowed, detail);
    let mut origins = headers.get_all(header::ORIGIN).peekable();
    if origins.peek().is_some() {
        let unknown = origins.find(|origin| !origin.to_str().is_ok_and(|origin| is_allowed(config, origin)));
        return unknown.map_or(Ok(()), |origin| Err(refused(refusal(origin))));
    }
    let own = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    if headers.get_all("sec-fetch-site").all(own) {
        return Ok(());
    }
    Err(refused(
        "a cross-site request must have an Origin header; use fetch with mode \"cors\", from an origin in \
         server.allowed_origins"
            .to_owned(),
    ))
}

/// The error for an origin that is not allowed: the reason, and what to do.
fn refusal(origin: &HeaderValue) -> String {
    match origin.to_str() {
        Ok("null") => {
            "pages opened from a file or a sandbox have no usable Origin: serve the page over http".to_owned()
        }
        Ok(origin) if is_plain(origin) => {
            format!("the origin {origin:?} is not allowed: add it to server.allowed_origins")
        }
        _ => "the Origin is not allowed: add it to server.allowed_origins".to_owned(),
    }
}

/// Whether an error may repeat a name from a client. The server never sends back arbitrary text.
fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:-[]/".contains(&byte);
    (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(plain)
}

fn is_allowed(config: &PresentationConfig, origin: &str) -> bool {
    is_own(config, origin) || is_listed(config, origin)
}

/// Whether an origin is one of the server's own names.
fn is_own(config: &PresentationConfig, origin: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        let host = origin.strip_prefix(scheme);
        host.is_some_and(|host| config.allowed_hosts.iter().any(|own| own.eq_ignore_ascii_case(host)))
    })
}

/// Whether no page of another origin has sent the request. Browsers omit `Origin` when a page reads from its own
/// server.
pub(crate) fn comes_from_own_page(config: &PresentationConfig, headers: &HeaderMap) -> bool {
    headers.get_all(header::ORIGIN).all(|origin| origin.to_str().is_ok_and(|it| is_own(config, it)))
}

/// Whether an origin is in `server.allowed_origins`, in exactly this spelling.
pub(crate) fn is_listed(config: &PresentationConfig, origin: &str) -> bool {
    // Sandboxed and local pages send `null`, which does not identify them.
    origin != "null" && config.allowed_origins.iter().any(|allowed| allowed == origin)
}
