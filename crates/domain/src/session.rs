//! The agent program's own conversation id.

use std::fmt;

/// The agent program's own conversation id, by which a later turn resumes it.
///
/// Agent programs look up the conversation by this id, some of them as a file name. The id is therefore never a path:
/// it cannot direct a program to a conversation outside the directories that the program may read. It also cannot be
/// parsed as a command-line option.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SessionId(Box<str>);

impl SessionId {
    /// The maximum length of an id, in characters.
    pub const CHARS_MAX: usize = 128;

    /// Checks an id from outside: from a client, a file, a database, or an agent.
    ///
    /// # Errors
    /// [`SessionIdError`] if the text is not a valid id.
    pub fn new(id: &str) -> Result<Self, SessionIdError> {
        let visible = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'\\' | b'%');
        let good = (1..=Self::CHARS_MAX).contains(&id.len())
            && id.bytes().all(visible)
            && !id.starts_with(['-', '.'])
            && !id.contains("..");
        if good { Ok(Self(id.into())) } else { Err(SessionIdError) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0.into()
    }
}

/// The text is not a valid [`SessionId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionIdError;

impl SessionIdError {
    /// The rule for a valid id.
    pub const RULE: &'static str = "must have 1 to 128 visible ASCII characters, without /, \\, % or .., \
         and must not begin with a hyphen or a dot";
}

impl fmt::Display for SessionIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a session id {}", Self::RULE)
    }
}

impl std::error::Error for SessionIdError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ids_of_real_agents_are_taken() {
        let longest = "s".repeat(SessionId::CHARS_MAX);
        for id in [
            "cf679356-7fa4-4866-9d98-9c85299f6921",
            "01a1ffdd-1380-7732-9648-9489de0f1b2c",
            "ses_dfc7490bcffeoiZzeR1Rn1W6YI",
            "thread:1@host",
            "a.b",
            "latest",
            &longest,
        ] {
            assert_eq!(SessionId::new(id).map(SessionId::into_string).as_deref(), Ok(id));
        }
    }

    #[test]
    fn what_may_be_a_path_or_an_option_is_refused() {
        let too_long = "s".repeat(SessionId::CHARS_MAX + 1);
        for id in [
            "",
            "/",
            "/etc/passwd",
            "a/b",
            "a\\b",
            "C:\\a",
            "..",
            ".",
            ".hidden",
            "../a",
            "a..b",
            "a/../b",
            "~/a",
            "%2e%2e%2fa",
            "-p",
            "a b",
            "a\0",
            "a\n",
            "é",
            &too_long,
        ] {
            assert_eq!(SessionId::new(id), Err(SessionIdError), "{id:?}");
        }
    }
}
