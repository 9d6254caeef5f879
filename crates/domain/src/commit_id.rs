//! The name of a commit in a git repository.

use std::fmt;

/// The id of a commit, as git prints it: 40 hexadecimal digits, or 64 in a repository with SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CommitId(String);

impl CommitId {
    /// Returns `None` if the text is not a complete id.
    pub fn new(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(is_digit);
        is_id.then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_id_is_one() {
        for good in ["0123456789abcdef0123456789abcdef01234567", &"a".repeat(64)] {
            assert_eq!(CommitId::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "HEAD", "-c", "0123456", &"A".repeat(40), &"g".repeat(40), &"a".repeat(41)] {
            assert_eq!(CommitId::new(bad), None, "{bad}");
        }
    }
}
