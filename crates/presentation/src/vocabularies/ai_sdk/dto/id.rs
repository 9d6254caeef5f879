//! Ids that clients choose.

/// Characters of a client's own id of a conversation, a message or a request.
const ID_CHARS: usize = 255;

/// What is wrong with an id, if anything.
pub(super) fn is_id(id: &str) -> Option<&'static str> {
    let good = (1..=ID_CHARS).contains(&id.chars().count());
    (!good).then_some("must be 1 to 255 characters long")
}
