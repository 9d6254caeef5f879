//! How clients outside of this machine reach the server: its certificate, and its public URL.

use std::time::Duration;

use tokenrail_domain::Timestamp;
use tokenrail_ports::IClock as _;

use super::{Finding, Verdict, finding};
use crate::clock::SystemClock;
use crate::config::Config;

/// How long before its end a certificate should be renewed.
const RENEW_BEFORE: Duration = Duration::from_hours(14 * 24);
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// Whether the files of TLS can be used, and for how long. `None` without TLS.
pub(super) fn certificate(config: &Config) -> Option<Finding> {
    let name = "TLS certificate";
    let files = config.tls.as_ref()?;
    let shown = files.certificate.display();
    let expires = match files.expires() {
        Ok(expires) => expires,
        Err(error) => return Some(finding(name, Verdict::Bad, with_cause(&error))),
    };
    let Some(Timestamp(expires)) = expires else {
        return Some(finding(name, Verdict::Remark, format!("{shown}: cannot read when it expires")));
    };
    let left = expires - SystemClock.now().0;
    let days = left.abs() / DAY_MS;
    Some(if left < 0 {
        finding(name, Verdict::Bad, format!("{shown} expired {days} days ago; renew it"))
    } else if left < RENEW_BEFORE.as_millis() as i64 {
        finding(name, Verdict::Remark, format!("{shown} expires in {days} days; renew it"))
    } else {
        finding(name, Verdict::Good, format!("{shown} expires in {days} days"))
    })
}

pub(super) fn with_cause(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Whether the public URL fits the rest of the configuration. `None` if there is none.
pub(super) fn public_url(config: &Config) -> Option<Finding> {
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
        format!(
            "{url}: the token crosses the network in clear text; put a TLS proxy in front, and write https"
        )
    };
    let verdict = if config.tls.is_some() { Verdict::Bad } else { Verdict::Remark };
    Some(finding(name, verdict, text))
}
