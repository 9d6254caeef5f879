//! How long an upstream asks to wait before the next request.

use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// A header of some APIs, more precise than seconds.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// How long to wait, in milliseconds. `None` if the headers do not say so in a known form. A date is compared with the
/// upstream's own `Date`, because the clocks of the two machines may differ.
pub(super) fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let header = |name: &HeaderName| headers.get(name)?.to_str().ok();
    if let Some(ms) = header(&RETRY_AFTER_MS).and_then(|value| value.parse().ok()) {
        return Some(ms);
    }
    let value = header(&RETRY_AFTER)?;
    if let Ok(seconds) = value.parse::<u32>() {
        return Some(u64::from(seconds) * 1000);
    }
    let (until, now) =
        (httpdate::parse_http_date(value).ok()?, httpdate::parse_http_date(header(&DATE)?).ok()?);
    // A date in the past means "now".
    u64::try_from(until.duration_since(now).unwrap_or_default().as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(headers: &[(&'static str, &'static str)]) -> Option<u64> {
        let pairs =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        retry_after_ms(&pairs.collect())
    }

    #[test]
    fn seconds_dates_and_milliseconds_are_understood() {
        assert_eq!(waits(&[("retry-after", "7")]), Some(7000));
        let now = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(waits(&[now, ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")]), Some(30_000));
        assert_eq!(waits(&[now, ("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]), Some(0));
        assert_eq!(waits(&[("retry-after-ms", "250"), ("retry-after", "7")]), Some(250));
    }

    #[test]
    fn what_is_neither_says_nothing() {
        assert_eq!(waits(&[]), None);
        for value in ["", "soon", "-1", "1.5", "Sun, 06 Nov", "Sun, 06 Nov 1994 08:50:07 GMT"] {
            assert_eq!(waits(&[("retry-after", value)]), None, "{value}");
        }
        assert_eq!(waits(&[("retry-after-ms", "soon"), ("retry-after", "7")]), Some(7000));
    }
}
