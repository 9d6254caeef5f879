//! Why a request is refused.

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// It has no token, and no ticket that this path accepts.
    Unknown,
    /// Its token or ticket is wrong: a failed login.
    Failed,
    /// Its ticket was issued to a page of another origin.
    OtherOrigin,
    /// It has a session cookie, but nothing proves that a page of this server has sent it.
    OtherPage,
    /// Its ticket cannot be checked, because the database failed.
    Unchecked,
}
