//! Errors in the format of a vocabulary. The guard writes them, because it also refuses requests that reach no handler.

use actix_web::http::StatusCode;

use crate::error::Problem;

/// The format of all errors below a path.
#[derive(Clone, Copy)]
pub(crate) struct ForeignRefusals {
    pub(crate) below: &'static str,
    pub(crate) write: fn(&Problem) -> Refused,
}

/// An error in the format of a vocabulary.
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) json: Vec<u8>,
}

/// The formats of all vocabularies that have one. It is application data.
pub(crate) struct RefusalFormats(pub(crate) Vec<ForeignRefusals>);

impl RefusalFormats {
    /// The format of errors at this path. `None` for Tokenrail's own.
    pub(crate) fn at(&self, path: &str) -> Option<ForeignRefusals> {
        let is_below = |below| {
            path.strip_prefix(below).is_some_and(|rest: &str| rest.is_empty() || rest.starts_with('/'))
        };
        self.0.iter().copied().find(|refusals| is_below(refusals.below))
    }
}
