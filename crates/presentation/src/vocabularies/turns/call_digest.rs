//! The ids that agents give to tool calls, of a size that does not depend on the agent.

use ring::digest::{SHA256, digest};

use crate::hex::hex;

/// The longest id that is shown to clients as the agent gave it, in bytes.
const ID_BYTES: usize = 200;

/// What is kept of an id to know the call again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallDigest([u8; 16]);

impl CallDigest {
    pub(crate) fn of(id: &str) -> Self {
        let mut short = [0; 16];
        short.copy_from_slice(&digest(&SHA256, id.as_bytes()).as_ref()[..16]);
        Self(short)
    }
}

/// An id for clients. One that is too long becomes a short one, which is always the same.
pub(crate) fn shown(id: &str) -> String {
    if id.len() <= ID_BYTES { id.to_owned() } else { format!("call-{}", hex(&CallDigest::of(id).0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_long_id_becomes_another() {
        let longest = "é".repeat(ID_BYTES / 2);
        assert_eq!((shown("call_1"), shown(&longest)), ("call_1".to_owned(), longest.clone()));
        let [one, other] = ["a", "b"].map(|end| shown(&format!("{longest}{end}")));
        assert_eq!(one.len(), "call-".len() + 32);
        assert_ne!(one, other);
        assert_eq!(one, shown(&format!("{longest}a")));
    }
}
