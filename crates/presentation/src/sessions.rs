//! Sessions of browsers: a signed cookie stands for the token, so that a page need not keep the token. The server
//! stores no session. A one-time login code starts one without showing the token.

mod codes;

use std::time::Duration;

use actix_web::http::header::{self, HeaderMap};
use cookie::{Cookie, SameSite};
use ring::hmac;
use tokenrail_domain::Timestamp;

use crate::derived_key::derived_key;
use crate::hex::{hex, unhex};
pub(crate) use codes::LoginCodes;

/// The purpose of the derived key. If the meaning of the cookie changes, change this too, so that no old cookie is
/// valid.
const PURPOSE: &[u8] = b"tokenrail: sessions of browsers, 1";

const ISSUED: usize = 8;
const NONCE: usize = 16;
const SIGNED: usize = ISSUED + NONCE;
const TAG: usize = 32;

/// Issues and checks session cookies. The key is derived from the token, so a new token revokes every session.
pub(crate) struct Sessions {
    key: hmac::Key,
    /// Its name: see [`crate::session_cookie`].
    cookie: String,
    /// The path below which browsers send the cookie.
    path: String,
    age: Duration,
}

/// Whether browsers may send a cookie over connections without TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Tls,
    Plain,
}

impl Sessions {
    /// Sessions of the pages below `base_path` that last for `age`. The base path is empty for the root.
    pub(crate) fn new(secret: &[u8], cookie: String, base_path: &str, age: Duration) -> Self {
        // Other programs below the same host name do not get the cookie.
        let path = if base_path.is_empty() { "/" } else { base_path }.to_owned();
        Self { key: derived_key(secret, PURPOSE), cookie, path, age }
    }

    /// The `Set-Cookie` of a new session.
    pub(crate) fn start(&self, random: [u8; 32], now: Timestamp, transport: Transport) -> String {
        let mut signed = [0; SIGNED];
        signed[..ISSUED].copy_from_slice(&now.0.to_be_bytes());
        signed[ISSUED..].copy_from_slice(&random[..NONCE]);
        let tag = hmac::sign(&self.key, &signed);
        self.set_cookie(hex(&signed) + &hex(tag.as_ref()), self.age, transport)
    }

    /// The `Set-Cookie` that makes a browser forget its session.
    pub(crate) fn end(&self, transport: Transport) -> String {
        self.set_cookie(String::new(), Duration::ZERO, transport)
    }

    fn set_cookie(&self, value: String, age: Duration, transport: Transport) -> String {
        Cookie::build((self.cookie.as_str(), value))
            .path(self.path.as_str())
            .http_only(true)
            .same_site(SameSite::Strict)
            .secure(transport == Transport::Tls)
            .max_age(age.try_into().unwrap_or(cookie::time::Duration::MAX))
            .to_string()
    }

    /// Whether a request has the cookie of a valid session.
    pub(crate) fn accepts(&self, headers: &HeaderMap, now: Timestamp) -> bool {
        let lines = headers.get_all(header::COOKIE).filter_map(|line| line.to_str().ok());
        let mut cookies = lines.flat_map(Cookie::split_parse).flatten();
        cookies.any(|cookie| cookie.name() == self.cookie && self.is_valid(cookie.value(), now))
    }

    fn is_valid(&self, value: &str, now: Timestamp) -> bool {
        let Some(bytes) = unhex(value).filter(|bytes| bytes.len() == SIGNED + TAG) else { return false };
        let (signed, tag) = bytes.split_at(SIGNED);
        if hmac::verify(&self.key, signed, tag).is_err() {
            return false;
        }
        let mut issued = [0; ISSUED];
        issued.copy_from_slice(&signed[..ISSUED]);
        let age = i64::try_from(self.age.as_millis()).unwrap_or(i64::MAX);
        now.0 < i64::from_be_bytes(issued).saturating_add(age)
    }
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::HeaderValue;

    use super::*;

    const AGE: Duration = Duration::from_mins(1);
    const NAME: &str = "tokenrail_session_7117";

    fn sessions(token: &str) -> Sessions {
        Sessions::new(token.as_bytes(), NAME.to_owned(), "", AGE)
    }

    /// What a browser sends after it got this `Set-Cookie`.
    fn pair(set_cookie: &str) -> &str {
        set_cookie.split(';').next().unwrap()
    }

    fn accepts(sessions: &Sessions, cookie: &str, now: i64) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::COOKIE, HeaderValue::from_str(cookie).unwrap());
        sessions.accepts(&headers, Timestamp(now))
    }

    #[test]
    fn a_session_is_good_for_its_time_on_every_server_with_the_token() {
        let started = sessions("token").start([7; 32], Timestamp(1000), Transport::Plain);
        let cookie = pair(&started);
        assert!(accepts(&sessions("token"), cookie, 60_999));
        assert!(accepts(&sessions("token"), &format!("a=b; {NAME}=old; {cookie}; c=d"), 60_999));
        assert!(!accepts(&sessions("token"), cookie, 61_000), "expired");
        assert!(!accepts(&sessions("new"), cookie, 1000), "the token was rotated");
        assert!(!accepts(&sessions("token"), &cookie.replace("7117", "7118"), 1000), "of another server");
        let shorter = Sessions::new(b"token", NAME.to_owned(), "", Duration::from_secs(1));
        assert!(!accepts(&shorter, cookie, 2000), "a shorter time holds for sessions that exist");
    }

    #[test]
    fn no_digit_of_a_cookie_can_be_changed() {
        let sessions = sessions("token");
        let started = sessions.start([7; 32], Timestamp(1000), Transport::Plain);
        let value = pair(&started).split_once('=').unwrap().1;
        for at in 0..value.len() {
            let mut changed = value.to_owned().into_bytes();
            changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(!accepts(&sessions, &format!("{NAME}={changed}"), 1000), "{at}");
        }
        for strange in ["", "0", "zz", &value[2..], &value.to_uppercase(), &format!("{value}00")] {
            assert!(!accepts(&sessions, &format!("{NAME}={strange}"), 1000), "{strange}");
        }
    }

    #[test]
    fn no_script_reads_the_cookie_and_no_other_site_sends_it() {
        let sessions = sessions("token");
        let plain = sessions.start([7; 32], Timestamp(1000), Transport::Plain);
        assert!(plain.ends_with("; HttpOnly; SameSite=Strict; Path=/; Max-Age=60"), "{plain}");
        let over_tls = sessions.start([7; 32], Timestamp(1000), Transport::Tls);
        assert!(over_tls.contains("; Secure;"), "{over_tls}");
        assert!(sessions.end(Transport::Plain).contains("; Max-Age=0"));
    }
}
