//! A server below a path of another server, such as `https://example.com/agents/`. The proxy in front may remove the
//! path from requests, or leave it there. Both work.

use actix_web::dev::ServiceRequest;
use actix_web::http::Uri;
use actix_web::http::header::{self, HeaderMap, HeaderValue};
use tokenrail_domain::AgentId;

/// Removes the base path from the request, if it is there. The routes then see the request as the proxy would send it
/// that removes the path itself.
pub(super) fn remove(base: &str, request: &mut ServiceRequest) {
    let Some(rest) = below(base, request.path()) else { return };
    let target = match request.uri().query() {
        Some(query) => format!("{rest}?{query}"),
        None => rest.to_owned(),
    };
    // The host of the target stays, because it is checked.
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = target.parse().ok();
    if let Ok(uri) = Uri::from_parts(parts) {
        request.match_info_mut().get_mut().update(&uri);
        request.head_mut().uri = uri;
    }
}

/// The part of the path behind the base path. `None` if the path has none.
fn below<'a>(base: &str, path: &'a str) -> Option<&'a str> {
    let rest = path.strip_prefix(base).filter(|_| !base.is_empty())?;
    match rest.strip_prefix('/') {
        None if rest.is_empty() => Some("/"),
        None => None,
        // Below `/agents`, this is the address of an agent's view whose base path has been removed already.
        Some(id) if base == "/agents" && id.parse::<AgentId>().is_ok() => None,
        Some(_) => Some(rest),
    }
}

/// Adds the base path to the addresses in a response's headers. Clients resolve them against the address that they
/// requested, which has the base path.
pub(super) fn add(base: &str, headers: &mut HeaderMap) {
    if base.is_empty() {
        return;
    }
    for (name, begins) in [(header::LOCATION, ""), (header::LINK, "<")] {
        let value = headers.get(&name).and_then(|value| value.to_str().ok());
        let path = value.and_then(|value| value.strip_prefix(begins)).filter(|path| path.starts_with('/'));
        if let Some(value) =
            path.and_then(|path| HeaderValue::from_str(&format!("{begins}{base}{path}")).ok())
        {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_path_is_removed_where_it_is() {
        for (base, path, expected) in [
            ("/agents", "/agents/api/agents", Some("/api/agents")),
            ("/agents", "/agents/", Some("/")),
            ("/agents", "/agents", Some("/")),
            ("/agents", "/agents/app.js", Some("/app.js")),
            (
                "/agents",
                "/agents/agents/01a212db-066e-751c-97a8-fada22ad15de",
                Some("/agents/01a212db-066e-751c-97a8-fada22ad15de"),
            ),
            // The proxy has removed the base path of this one.
            ("/agents", "/agents/01a212db-066e-751c-97a8-fada22ad15de", None),
            // An id has hexadecimal digits in five groups.
            (
                "/agents",
                "/agents/------------------------------------",
                Some("/------------------------------------"),
            ),
            ("/agents", "/api/agents", None),
            ("/agents", "/agentsx", None),
            ("/a/b", "/a/b/ws", Some("/ws")),
            ("", "/api/agents", None),
        ] {
            assert_eq!(below(base, path), expected, "{base} {path}");
        }
    }

    #[test]
    fn addresses_in_headers_have_the_base_path() {
        let mut headers = HeaderMap::new();
        headers.insert(header::LOCATION, HeaderValue::from_static("/api/agents/1"));
        headers.insert(header::LINK, HeaderValue::from_static("</api/agents?before=1>; rel=\"next\""));
        add("/agents", &mut headers);
        assert_eq!(headers.get(header::LOCATION).unwrap(), "/agents/api/agents/1");
        assert_eq!(headers.get(header::LINK).unwrap(), "</agents/api/agents?before=1>; rel=\"next\"");
    }
}
