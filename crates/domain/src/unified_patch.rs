//! The change that a tool call made to files.

use std::fmt::{self, Write as _};
use std::iter::Peekable;
use std::str::Split;

/// The change that a tool call made to files, as one unified diff: the format of `diff -u`.
///
/// For each file, in the order of the agent:
///
/// ```text
/// --- /project/a.txt
/// +++ /project/a.txt
/// @@ -3,3 +3,3 @@
///  before
/// -old
/// +new
///  after
/// ```
///
/// * The two names are the paths as the agent writes them, or `/dev/null` for a file that does not exist on that side.
/// * Each file has at least one hunk. The header of a hunk always has both counts, and nothing after the second `@@`.
/// * The lines of a hunk begin with ` `, `-`, `+`, or `\` (`\ No newline at end of file`). Their number is that of the
///   header, so a removed line `-- x` cannot be taken for the name of a file.
/// * Every line ends with `\n`. Nothing else is between the hunks: no `diff --git`, no `Index:`, no modes, no renames
///   without changed lines.
///
/// It is what the agent reports, for display. Some agents change the spaces at the beginning of lines in it, so it need
/// not apply to the file.
#[derive(Clone, PartialEq, Eq)]
pub struct UnifiedPatch(Box<str>);

impl UnifiedPatch {
    /// The maximum size, in bytes. A longer patch is left out as a whole: a part of it would look like all of it, and
    /// the raw line has it.
    ///
    /// It is not configurable: parsing the same output again must give the same result.
    pub const BYTES_MAX: usize = 64 << 10;

    /// Reads a unified diff, and writes it in the form above. Lines between the hunks, such as `diff --git` and
    /// `Index:`, are left out.
    ///
    /// `None` if the text is no unified diff with the names of files, if it changes nothing, or if it is longer than
    /// [`UnifiedPatch::BYTES_MAX`].
    pub fn read(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n').unwrap_or(text).split('\n').peekable();
        let mut names: Option<(&str, &str)> = None;
        let mut written = Written { text: String::new(), has_changes: false };
        // The names of a file without hunks are not written.
        let mut is_named = false;
        while let Some(line) = lines.next() {
            if let Some(old) = line.strip_prefix("--- ") {
                let new = lines.next()?.strip_prefix("+++ ")?;
                names = Some((path(old)?, path(new)?));
                is_named = false;
            } else if let Some(hunk) = HunkHeader::read(line) {
                let (old, new) = names?;
                if !is_named {
                    written.line(format_args!("--- {old}\n+++ {new}"))?;
                    is_named = true;
                }
                written.hunk(hunk, &mut lines)?;
            }
        }
        written.has_changes.then(|| Self(written.text.into()))
    }

    /// Takes text that is known to be in the form above: it was read with [`UnifiedPatch::read`] before it was stored.
    pub fn new_unchecked(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for UnifiedPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// A path in the header of a file. A time may follow it, after a tab. `None` if the path cannot be written in one line.
fn path(name: &str) -> Option<&str> {
    let path = name.split_once('\t').map_or(name, |(path, _)| path);
    (!path.is_empty() && !path.contains(char::is_control)).then_some(path)
}

/// The first line of a hunk, and the number of lines on each side.
#[derive(Clone, Copy)]
struct HunkHeader {
    old: (u32, u32),
    new: (u32, u32),
}

impl HunkHeader {
    fn read(line: &str) -> Option<Self> {
        let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        Some(Self { old: range(old)?, new: range(new)? })
    }
}

/// The first line and the number of lines: `3,4`, or `3` for one line.
fn range(text: &str) -> Option<(u32, u32)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.parse().ok()?, count.parse().ok()?))
}

struct Written {
    text: String,
    has_changes: bool,
}

impl Written {
    /// `None` if the patch becomes too long.
    fn line(&mut self, line: fmt::Arguments<'_>) -> Option<()> {
        writeln!(self.text, "{line}").ok()?;
        (self.text.len() <= UnifiedPatch::BYTES_MAX).then_some(())
    }

    /// Takes exactly the lines that the header counts.
    fn hunk(&mut self, header: HunkHeader, lines: &mut Peekable<Split<'_, char>>) -> Option<()> {
        let HunkHeader { old: (old, mut old_left), new: (new, mut new_left) } = header;
        self.line(format_args!("@@ -{old},{old_left} +{new},{new_left} @@"))?;
        while 0 < old_left || 0 < new_left {
            let line = lines.next()?;
            let mark = line.bytes().next().unwrap_or(b' ');
            match mark {
                b' ' => (old_left, new_left) = (old_left.checked_sub(1)?, new_left.checked_sub(1)?),
                b'-' => old_left = old_left.checked_sub(1)?,
                b'+' => new_left = new_left.checked_sub(1)?,
                b'\\' => {}
                _ => return None,
            }
            self.has_changes |= matches!(mark, b'-' | b'+');
            // Some programs leave out the space of an empty line.
            self.line(format_args!("{}", if line.is_empty() { " " } else { line }))?;
        }
        while let Some(line) = lines.next_if(|line| line.starts_with('\\')) {
            self.line(format_args!("{line}"))?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Lines of a patch, right and wrong ones.
    fn line() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[-+ \\\\]?[-+ a@]{0,6}",
            1 => Just("--- a/f".to_owned()),
            1 => Just("+++ b/f\t2026".to_owned()),
            2 => (0..4_u32, 0..3_u32, 0..3_u32).prop_map(|(at, old, new)| format!("@@ -{at},{old} +{at},{new} @@ fn")),
            1 => ".{0,8}",
        ]
    }

    proptest! {
        #[test]
        fn what_was_read_is_read_again_unchanged(lines in prop::collection::vec(line(), 0..12)) {
            let text = format!("--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n{}", lines.join("\n"));
            for text in [text, lines.join("\n")] {
                if let Some(patch) = UnifiedPatch::read(&text) {
                    prop_assert_eq!(UnifiedPatch::read(patch.as_str()), Some(patch));
                }
            }
        }
    }

    fn read(text: &str) -> Option<String> {
        UnifiedPatch::read(text).map(|patch| patch.as_str().to_owned())
    }

    const PLAIN: &str = "--- /p/a.txt\n+++ /p/a.txt\n@@ -3,3 +3,3 @@\n before\n-old\n+new\n after\n";

    #[test]
    fn a_patch_in_the_form_is_taken_as_it_is() {
        assert_eq!(read(PLAIN).as_deref(), Some(PLAIN));
        assert_eq!(read(PLAIN.trim_end()).as_deref(), Some(PLAIN), "without the last line break");
        let two =
            PLAIN.to_owned() + "--- /dev/null\n+++ /p/b\n@@ -0,0 +1,1 @@\n+b\n\\ No newline at end of file\n";
        assert_eq!(read(&two), Some(two));
    }

    #[test]
    fn what_other_programs_add_is_left_out() {
        let index = format!("Index: /p/a.txt\n{}\n{PLAIN}", "=".repeat(67));
        assert_eq!(read(&index).as_deref(), Some(PLAIN));
        let times =
            PLAIN.replace("a.txt\n", "a.txt\t2026-11-26 05:49:27\n").replace("@@\n", "@@ fn main() {\n");
        assert_eq!(read(&times).as_deref(), Some(PLAIN));
        let git = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n";
        assert_eq!(read(git).as_deref(), Some("--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-1\n+2\n"));
        let without_hunks = format!("--- /p/b\n+++ /p/b\n{PLAIN}--- /p/c\n+++ /p/c\n");
        assert_eq!(read(&without_hunks).as_deref(), Some(PLAIN));
    }

    #[test]
    fn an_empty_line_keeps_its_place() {
        let bare = "--- f\n+++ f\n@@ -1,3 +1,2 @@\n a\n\n-b\n";
        assert_eq!(read(bare).as_deref(), Some("--- f\n+++ f\n@@ -1,3 +1,2 @@\n a\n \n-b\n"));
    }

    #[test]
    fn a_line_of_a_hunk_is_never_a_header() {
        let comments = "--- f.sql\n+++ f.sql\n@@ -1,2 +1,2 @@\n--- old\n-@@ -1 +1 @@\n+++ new\n+x\n";
        assert_eq!(read(comments).as_deref(), Some(comments));
    }

    #[test]
    fn what_is_no_patch_is_none() {
        for wrong in [
            "",
            "hello",
            "@@ -1,1 +1,1 @@\n-a\n+b\n",
            "--- f\n@@ -1,1 +1,1 @@\n-a\n+b\n",
            "--- f\n+++ f\n",
            "--- f\n+++ f\n@@ -1,1 +1,1 @@\n a\n",
            "--- f\n+++ f\n@@ -1,2 +1,1 @@\n-a\n+b\n",
            "--- f\n+++ f\n@@ -1,1 +1,1 @@\n-a\nb\n+b\n",
            "--- f\n+++ f\n@@ -1,0 +1,1 @@\n-a\n+b\n",
            "--- \n+++ f\n@@ -1,1 +1,1 @@\n-a\n+b\n",
            "--- f\u{1}\n+++ f\n@@ -1,1 +1,1 @@\n-a\n+b\n",
            "--- f\n+++ f\n@@ -1,4294967296 +1,1 @@\n-a\n+b\n",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_patch_that_is_too_long_is_left_out_as_a_whole() {
        let of_size = |bytes: usize| {
            let head = "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+";
            format!("{head}{}\n", "x".repeat(bytes - head.len() - 1))
        };
        let longest = of_size(UnifiedPatch::BYTES_MAX);
        assert_eq!(read(&longest), Some(longest));
        assert_eq!(read(&of_size(UnifiedPatch::BYTES_MAX + 1)), None);
    }
}
