//! How clients outside of this machine reach the server: its certificate, and its public URL.

use std::time::Duration;

use tokenrail_domain::Timestamp;
use tokenrail_ports::IClock as _;

use super::{DoctorCheck, Verdict, finding};
use crate::cli::screen::counted;
use crate::clock::SystemClock;
use crate::config::Config;

/// How long before its end a certificate should be renewed.
const RENEW_BEFORE: Duration = Duration::from_hours(14 * 24);
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Whether the files of TLS can be used, and for how long. `None` without TLS.
pub(super) fn certificate(config: &Config) -> Option<DoctorCheck> {
    let name = "TLS certificate";
    let files = config.tls.as_ref()?;
    let shown = files.certificate.display();
    let expires = match files.expires() {
        Ok(expires) => expires,
        Err(error) => return Some(finding(name, Verdict::Bad, with_cause(&error))),
    };
    let Some(Timestamp(expires)) = expires else {
        return Some(finding(name, Verdict::Warning, format!("{shown}: cannot read its expiry date")));
    };
    let left = expires - SystemClock.now().0;
    Some(if left < 0 {
        finding(name, Verdict::Bad, format!("{shown} expired {}; renew it", when(left)))
    } else if left < RENEW_BEFORE.as_millis() as i64 {
        finding(name, Verdict::Warning, format!("{shown} expires {}; renew it", when(left)))
    } else {
        finding(name, Verdict::Good, format!("{shown} expires {}", when(left)))
    })
}

/// A time in the future, or in the past if it is negative, as whole days.
fn when(left_ms: i64) -> String {
    let days = counted(left_ms.unsigned_abs() / DAY_MS, "day");
    match (left_ms.unsigned_abs() / DAY_MS, left_ms < 0) {
        (0, true) => "less than a day ago".to_owned(),
        (0, false) => "in less than a day".to_owned(),
        (_, true) => format!("{days} ago"),
        (_, false) => format!("in {days}"),
    }
}

/// The error and its cause. If the error ends with advice, the cause is in parentheses.
pub(super) fn with_cause(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    match error.source() {
        Some(cause) if text.contains("; ") => format!("{text} ({cause})"),
        Some(cause) => format!("{text}: {cause}"),
        None => text,
    }
}

/// Whether the public URL fits the rest of the configuration. `None` if there is none.
pub(super) fn public_url(config: &Config) -> Option<DoctorCheck> {
    let name = "public URL";
    let url = config.public_url.as_ref()?;
    if url.is_encrypted() {
        return Some(finding(name, Verdict::Good, url.to_string()));
    }
    let text = if config.tls.is_some() {
        format!(
            "{url} begins with http, but the server has a certificate; write https, or remove tls_cert and tls_key"
        )
    } else {
        format!("{url}: the token crosses the network unencrypted; put a TLS proxy in front, and write https")
    };
    let verdict = if config.tls.is_some() { Verdict::Bad } else { Verdict::Warning };
    Some(finding(name, verdict, text))
}

#[cfg(test)]
mod tests {
    use super::{DAY_MS, when};

    #[test]
    fn days_are_counted_in_words() {
        let day = i64::try_from(DAY_MS).unwrap();
        let said = [2 * day, day + 1, day - 1, 1 - day, -day, -3 * day].map(when);
        let expected =
            ["in 2 days", "in 1 day", "in less than a day", "less than a day ago", "1 day ago", "3 days ago"];
        assert_eq!(said, expected);
    }
}
