//! Ids that clients choose.

/// The maximum length of a client's own id of a conversation, a message or a request, in characters.
const ID_CHARS: usize = 255;

/// Returns what is wrong with an id. `None` if the id is valid.
pub(super) fn is_id(id: &str) -> Option<&'static str> {
    let good = (1..=ID_CHARS).contains(&id.chars().count());
    (!good).then_some("must be 1 to 255 characters long")
}
