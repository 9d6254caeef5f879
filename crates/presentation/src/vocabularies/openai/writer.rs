//! What writes a stream of either API.

use bytes::Bytes;

use super::fold::OpenAi;
use crate::fold::Frames;

/// Writes what a stream contains, without what its client has already.
pub(crate) trait Writer: Frames<OpenAi> {
    /// Takes what was written since the last call.
    fn take(&mut self) -> Bytes;

    /// Whether the client claims to have more than there was so far.
    fn is_ahead(&self) -> bool;
}
