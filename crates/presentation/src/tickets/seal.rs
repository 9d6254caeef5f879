//! Signs tickets, so that an `EventSource` can reconnect: the browser repeats its URL, and so the ticket in it.

use ring::hmac;
use tokenrail_domain::Timestamp;

use super::denied::Denied;
use super::opened::{NONCE, Opening};
use crate::derived_key::derived_key;
use crate::hex::{hex, unhex};

/// The purpose of the derived key. If the meaning of tickets changes, change this too, so that no old ticket is valid.
const PURPOSE: &[u8] = b"tokenrail: tickets of event streams, 1";

const UNTIL: usize = 8;
const ORIGIN: usize = 16;
const SIGNED: usize = NONCE + UNTIL + ORIGIN;
const TAG: usize = 32;

/// Signs tickets of event streams. The key is derived from the token, so it survives a restart, but not a new token.
pub(crate) struct Seal(hmac::Key);

impl Seal {
    pub(crate) fn new(secret: &[u8]) -> Self {
        Self(derived_key(secret, PURPOSE))
    }

    /// A ticket for a path, and for the origin of the page that requested it, if a page did.
    pub(crate) fn ticket(
        &self,
        nonce: [u8; 32],
        path: &str,
        origin: Option<&str>,
        until: Timestamp,
    ) -> String {
        let mut signed = [0; SIGNED];
        signed[..NONCE].copy_from_slice(&nonce[..NONCE]);
        signed[NONCE..NONCE + UNTIL].copy_from_slice(&until.0.to_be_bytes());
        if let Some(origin) = origin {
            signed[NONCE + UNTIL..].copy_from_slice(&self.origin(origin));
        }
        let tag = hmac::sign(&self.0, &message(&signed, path));
        hex(&signed) + &hex(tag.as_ref())
    }

    /// Verifies that a server with this token has issued the ticket, for this path and a page of this origin, and that
    /// it has not expired. It does not check whether the ticket has opened a stream.
    ///
    /// # Errors
    /// [`Denied`] if one of these conditions is not met.
    pub(crate) fn check(
        &self,
        ticket: &str,
        path: &str,
        origin: Option<&str>,
        now: Timestamp,
    ) -> Result<Opening, Denied> {
        let bytes = unhex(ticket).filter(|bytes| bytes.len() == SIGNED + TAG).ok_or(Denied::Failed)?;
        let (signed, tag) = bytes.split_at(SIGNED);
        hmac::verify(&self.0, &message(signed, path), tag).map_err(|_| Denied::Failed)?;
        let (mut nonce, mut until) = ([0; NONCE], [0; UNTIL]);
        nonce.copy_from_slice(&signed[..NONCE]);
        until.copy_from_slice(&signed[NONCE..NONCE + UNTIL]);
        let until = Timestamp(i64::from_be_bytes(until));
        if until <= now {
            return Err(Denied::Failed);
        }
        let given_to = &signed[NONCE + UNTIL..];
        let other = origin.is_some_and(|origin| given_to != [0; ORIGIN] && given_to != self.origin(origin));
        if other { Err(Denied::OtherOrigin) } else { Ok(Opening { until, nonce }) }
    }

    /// A short hash of an origin, because an origin may be longer than a ticket should be.
    fn origin(&self, origin: &str) -> [u8; ORIGIN] {
        let tag = hmac::sign(&self.0, format!("origin {origin}").as_bytes());
        let mut short = [0; ORIGIN];
        short.copy_from_slice(&tag.as_ref()[..ORIGIN]);
        short
    }
}

fn message(signed: &[u8], path: &str) -> Vec<u8> {
    [b"ticket ", signed, path.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "/api/agents/0195bd2f-0a00-7000-8000-000000000000/events";
    const PAGE: Option<&str> = Some("https://app.example");

    #[test]
    fn a_ticket_is_good_for_its_path_its_origin_and_its_time_on_every_server_with_the_token() {
        let ticket = Seal::new(b"token").ticket([7; 32], PATH, PAGE, Timestamp(1000));
        let seal = Seal::new(b"token");
        let good = Ok(Opening { until: Timestamp(1000), nonce: [7; NONCE] });
        assert_eq!(seal.check(&ticket, PATH, PAGE, Timestamp(999)), good);
        assert_eq!(seal.check(&ticket, PATH, None, Timestamp(999)), good, "browsers leave it out");
        let other = seal.check(&ticket, PATH, Some("https://other.example"), Timestamp(999));
        assert_eq!(other, Err(Denied::OtherOrigin));
        assert_eq!(seal.check(&ticket, PATH, PAGE, Timestamp(1000)), Err(Denied::Failed), "too late");
        assert_eq!(seal.check(&ticket, "/ws", PAGE, Timestamp(999)), Err(Denied::Failed));
        assert_eq!(Seal::new(b"new").check(&ticket, PATH, PAGE, Timestamp(999)), Err(Denied::Failed));
        let of_a_program = seal.ticket([7; 32], PATH, None, Timestamp(1000));
        assert_eq!(seal.check(&of_a_program, PATH, PAGE, Timestamp(999)), good);
    }

    #[test]
    fn no_bit_of_a_ticket_can_be_changed() {
        let seal = Seal::new(b"token");
        let ticket = seal.ticket([7; 32], PATH, PAGE, Timestamp(1000));
        for at in 0..ticket.len() {
            let mut changed = ticket.clone().into_bytes();
            changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(seal.check(&changed, PATH, PAGE, Timestamp(0)), Err(Denied::Failed), "{at}");
        }
        for strange in ["", "0", "zz", &ticket[2..], &ticket.to_uppercase(), &format!("{ticket}00"), "ä"] {
            assert_eq!(seal.check(strange, PATH, PAGE, Timestamp(0)), Err(Denied::Failed), "{strange}");
        }
    }
}
