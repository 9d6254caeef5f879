//! `server.public_url`: where browsers and other clients reach the server through a proxy.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;
use tokenrail_presentation::OWN_PATHS;

/// A URL such as `https://example.com/agents`, without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicUrl {
    /// `http` or `https`.
    scheme: String,
    /// The host, and the port unless it is that of the scheme.
    authority: String,
    port: u16,
    /// Empty, or a path such as `/agents`.
    path: String,
}

impl PublicUrl {
    /// The value of `Host` that clients send, if the proxy does not change it.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// The port that clients use.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Whether clients use TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.scheme == "https"
    }

    /// The path below which the server is reached. Empty for the root.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

impl FromStr for PublicUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected =
            "expected a form like \"https://agents.example.com\" or \"https://example.com/agents\"";
        let url = Url::parse(text).map_err(|error| format!("invalid URL: {error}; {expected}"))?;
        let host = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https"));
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        let known = host.filter(|_| is_plain).zip(url.port_or_known_default());
        let Some((host, port)) = known else { return Err(format!("invalid URL; {expected}")) };
        let path = url.path().trim_end_matches('/');
        let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte);
        if !path.bytes().all(is_path) || path.contains("//") {
            return Err(format!(
                "the path {path:?} may contain only letters, digits and \"-._~\"; {expected}"
            ));
        }
        let first = path.split('/').nth(1).unwrap_or_default();
        // Below such a path, no request could be told from another.
        if OWN_PATHS.contains(&first) {
            return Err(format!(
                "the path must not begin with {first:?}, which is a path of the server itself"
            ));
        }
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Ok(Self { scheme: url.scheme().to_owned(), authority, port, path: path.to_owned() })
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, authority, port: _, path } = self;
        write!(f, "{scheme}://{authority}{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::PublicUrl;

    #[test]
    fn a_public_url_is_a_host_and_perhaps_a_path() {
        let read = |text: &str| text.parse::<PublicUrl>().map(|url| (url.to_string(), url.path().to_owned()));
        let ok = |url: &str, path: &str| Ok((url.to_owned(), path.to_owned()));
        assert_eq!(read("https://Agents.Example.com/"), ok("https://agents.example.com", ""));
        assert_eq!(read("https://example.com:443/a/b/"), ok("https://example.com/a/b", "/a/b"));
        assert_eq!(read("http://box:8080/agents"), ok("http://box:8080/agents", "/agents"));
        let ports = ["https://example.com", "http://example.com", "https://example.com:7117/a"];
        assert_eq!(ports.map(|url| url.parse::<PublicUrl>().unwrap().port()), [443, 80, 7117]);
        for wrong in [
            "agents.example.com",
            "ftp://x/",
            "https://x/?a",
            "https://u@x/",
            "https://x/api/",
            "https://x/problems",
            "https://x/healthz/",
            "https://x/readyz",
            "https://x/metrics",
            "https://x/socket.io",
            "https://x/openapi.json",
            "https://x/ag-ui",
            "https://x/openai/v1",
            "https://x/mcp",
            "https://x/a b",
            "/a",
        ] {
            read(wrong).expect_err(wrong);
        }
    }
}
