//! Keys that are derived from the token. A new token revokes everything that they have signed.

use ring::hmac;

/// The key for one purpose. Keys for different purposes are unrelated.
pub(crate) fn derived_key(secret: &[u8], purpose: &[u8]) -> hmac::Key {
    let secret = hmac::Key::new(hmac::HMAC_SHA256, secret);
    hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&secret, purpose).as_ref())
}
