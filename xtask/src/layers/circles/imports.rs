//! Reads what a Rust file imports: its `use` declarations, and paths that begin with `crate`, `super` or `self`.

/// One imported path.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Import {
    /// Without `*`, and without `self` at the end.
    pub(super) path: Vec<String>,
    /// The name of the import in the module. `None` for a path in the code, and for `*`.
    name: Option<String>,
}

impl Import {
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// All imports in the code of a file, except those of its tests.
pub(super) fn imports(text: &str) -> Vec<Import> {
    let words = words(&code(text));
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let is_use = word == "use";
        let begins_path = matches!(word.as_str(), "crate" | "super" | "self")
            && words.get(at + 1).is_some_and(|next| next == "::");
        if is_use || begins_path {
            let mut tree = Tree { words: &words, at: at + usize::from(is_use), is_use, found: &mut found };
            tree.read(&[]);
            at = tree.at.max(at + 1);
        } else {
            at += 1;
        }
    }
    found
}

/// The code without comments, strings and tests. Strings over several lines may leave words, which are no paths.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let begins_tests = |next: &&str| next.trim_start().starts_with("mod ") && next.ends_with('{');
        if line.trim() == "#[cfg(test)]" && lines.peek().is_some_and(begins_tests) {
            break;
        }
        let mut rest = line;
        loop {
            let comment = rest.find("//").unwrap_or(rest.len());
            let Some(quote) = rest.find('"').filter(|quote| *quote < comment) else {
                code.push_str(&rest[..comment]);
                break;
            };
            code.push_str(&rest[..quote]);
            rest = after_quote(&rest[quote + 1..]);
        }
        code.push('\n');
    }
    code
}

/// What follows the end of a string.
fn after_quote(text: &str) -> &str {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

/// Splits the code into names, `::`, and single characters.
fn words(code: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut in_name = false;
    for c in code.chars() {
        let joins = c.is_alphanumeric() || c == '_';
        match words.last_mut() {
            Some(last) if joins && in_name => last.push(c),
            Some(last) if c == ':' && last == ":" => last.push(c),
            _ if c.is_whitespace() => {}
            _ => words.push(c.to_string()),
        }
        in_name = joins;
    }
    words
}

/// Reads a tree of paths: `a::{b, c::d as e}`.
struct Tree<'a> {
    words: &'a [String],
    at: usize,
    is_use: bool,
    found: &'a mut Vec<Import>,
}

impl Tree<'_> {
    fn word(&self) -> &str {
        self.words.get(self.at).map_or("", String::as_str)
    }

    fn read(&mut self, before: &[String]) {
        let mut path = before.to_vec();
        let mut is_named = self.is_use;
        loop {
            match self.word() {
                "{" => return self.group(&path),
                "*" => {
                    is_named = false;
                    self.at += 1;
                    break;
                }
                "self" if !path.is_empty() => self.at += 1,
                name if name.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                    path.push(name.to_owned());
                    self.at += 1;
                }
                _ => break,
            }
            if self.word() != "::" {
                break;
            }
            self.at += 1;
        }
        let mut name = path.last().cloned();
        if self.is_use && self.word() == "as" {
            name = self.words.get(self.at + 1).cloned();
            self.at += 2;
        }
        self.found.push(Import { path, name: name.filter(|_| is_named) });
    }

    fn group(&mut self, path: &[String]) {
        self.at += 1;
        while !matches!(self.word(), "}" | "") {
            let before = self.at;
            self.read(path);
            if self.word() == "," || self.at == before {
                self.at += 1;
            }
        }
        self.at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let shown = imports(text).into_iter().map(|import| match &import.name {
            Some(name) if Some(name) != import.path.last() => format!("{} as {name}", import.path.join("::")),
            Some(_) => import.path.join("::"),
            None => format!("{} unnamed", import.path.join("::")),
        });
        assert_eq!(shown.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn groups_globs_and_new_names_are_read() {
        check("use a::{b, c::{self, D as E}, f::*};", &["a::b", "a::c", "a::c::D as E", "a::f unnamed"]);
        check("pub(crate) use super::super::a;", &["super::super::a"]);
    }

    #[test]
    fn a_path_in_the_code_is_read_and_one_in_a_text_is_not() {
        check("let a = crate::b::C::new(\"crate::\\\"d\"); // crate::e", &["crate::b::C::new unnamed"]);
        check("pub(crate) fn a(self) {}", &[]);
    }
}
