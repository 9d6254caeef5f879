//! When an upstream wants to be asked again.

use std::time::SystemTime;

use reqwest::header::{HeaderMap, HeaderName, RETRY_AFTER};

/// Of some APIs, and finer than seconds.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// How long to wait, in milliseconds; none where nothing is said that can be understood.
pub(super) fn retry_after_ms(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let header = |name: &HeaderName| headers.get(name)?.to_str().ok();
    if let Some(ms) = header(&RETRY_AFTER_MS).and_then(|value| value.parse().ok()) {
        return Some(ms);
    }
    let value = header(&RETRY_AFTER)?;
    match value.parse::<u32>() {
        Ok(seconds) => Some(u64::from(seconds) * 1000),
        Err(_) => {
            let date = httpdate::parse_http_date(value).ok()?;
            // What has passed is now.
            let wait = date.duration_since(now).unwrap_or_default();
            u64::try_from(wait.as_millis()).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn waits(headers: &[(&'static str, &'static str)]) -> Option<u64> {
        let pairs =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        // Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110.
        retry_after_ms(&pairs.collect(), UNIX_EPOCH + Duration::from_secs(784_111_777))
    }

    #[test]
    fn seconds_dates_and_milliseconds_are_understood() {
        assert_eq!(waits(&[("retry-after", "7")]), Some(7000));
        assert_eq!(waits(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")]), Some(30_000));
        assert_eq!(waits(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]), Some(0));
        assert_eq!(waits(&[("retry-after-ms", "250"), ("retry-after", "7")]), Some(250));
    }

    #[test]
    fn what_is_neither_says_nothing() {
        assert_eq!(waits(&[]), None);
        for value in ["", "soon", "-1", "1.5", "Sun, 06 Nov"] {
            assert_eq!(waits(&[("retry-after", value)]), None, "{value}");
        }
        assert_eq!(waits(&[("retry-after-ms", "soon"), ("retry-after", "7")]), Some(7000));
    }
}
