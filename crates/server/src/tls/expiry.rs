//! When a certificate expires. Only this field is read (RFC 5280); whether the rest is valid is for its clients to say.
//! A library for all of X.509 would add a dozen crates for this one field.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use tokenrail_domain::Timestamp;

/// The tag of the version, which the first versions of certificates do not have.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The end of a certificate's validity. `None` if it cannot be read.
pub(super) fn expiry(certificate: &[u8]) -> Option<Timestamp> {
    let certificate = Element::first(certificate)?;
    let mut next = Element::first(Element::first(certificate.content)?.content)?;
    if next.tag == VERSION {
        next = Element::first(next.rest)?;
    }
    // From the serial number, over the algorithm and the issuer, to the validity.
    for _ in 0..3 {
        next = Element::first(next.rest)?;
    }
    let begin = Element::first(next.content)?;
    time(&Element::first(begin.rest)?)
}

/// One element of DER.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    /// What comes after it.
    rest: &'a [u8],
}

impl<'a> Element<'a> {
    fn first(der: &'a [u8]) -> Option<Self> {
        let (&tag, der) = der.split_first()?;
        let (&length, der) = der.split_first()?;
        let (length, der) = if length < 0x80 {
            (usize::from(length), der)
        } else {
            // The length of the length.
            let (bytes, der) = der.split_at_checked(usize::from(length & 0x7f))?;
            let add = |length: usize, byte: &u8| length.checked_mul(256)?.checked_add(usize::from(*byte));
            (bytes.iter().try_fold(0, add)?, der)
        };
        let (content, rest) = der.split_at_checked(length)?;
        Some(Self { tag, content, rest })
    }
}

/// Reads `YYMMDDhhmmssZ` or `YYYYMMDDhhmmssZ`.
fn time(element: &Element<'_>) -> Option<Timestamp> {
    let text = std::str::from_utf8(element.content).ok()?.strip_suffix('Z')?;
    let text = match element.tag {
        UTC_TIME if text < "5" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let time = DateTime::strptime("%Y%m%d%H%M%S", text).ok()?;
    Some(Timestamp(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    #[test]
    fn the_expiry_of_a_certificate_is_found() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/tls");
        let certificate = CertificateDer::from_pem_file(format!("{folder}/first.pem")).unwrap();
        let years = expiry(&certificate).unwrap().0 / (365 * 24 * 60 * 60 * 1000);
        assert!((150..170).contains(&years), "a hundred years after it was made: {years}");
        for end in 0..certificate.len() {
            let _ = expiry(&certificate[..end]);
        }
    }

    #[test]
    fn both_forms_of_a_time_are_read() {
        let read = |tag, text: &str| time(&Element { tag, content: text.as_bytes(), rest: &[] });
        assert_eq!(read(UTC_TIME, "700101000001Z"), Some(Timestamp(1000)));
        assert_eq!(read(UTC_TIME, "490101000000Z"), read(GENERALIZED_TIME, "20490101000000Z"));
        assert_eq!(read(GENERALIZED_TIME, "20500101000000Z"), Some(Timestamp(2_524_608_000_000)));
        assert_eq!(read(GENERALIZED_TIME, "2050-01-01"), None);
    }
}
