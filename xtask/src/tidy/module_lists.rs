//! Lists of modules at the top of a file. A reader takes them for complete.

use crate::workspace::Source;

/// A comment that begins this many rows or items with modules of its file is a list of them.
const LISTED_MIN: usize = 2;

/// A module that is missing in the list of modules of its file is a fault. Modules that only some builds have, such as
/// tests, may be left out. A module may also be named in the text below the list.
pub(super) fn check(source: &Source, faults: &mut Vec<String>) {
    let modules = modules(&source.text);
    let comment: Vec<&str> = source.text.lines().filter_map(|line| line.strip_prefix("//! ")).collect();
    let begins_with_one = |line: &&&str| {
        let item = line.strip_prefix("| ").or_else(|| line.strip_prefix("* "));
        let code = item.filter(|item| item.trim_start_matches('[').starts_with('`'));
        code.and_then(|code| names(code).next()).is_some_and(|name| modules.contains(&name))
    };
    if comment.iter().filter(begins_with_one).count() < LISTED_MIN {
        return;
    }
    let named: Vec<&str> = comment.iter().flat_map(|line| names(line)).collect();
    for module in modules.iter().filter(|module| !named.contains(module)) {
        faults.push(format!("{}: the list of modules lacks `{module}`", source.path));
    }
}

/// The modules that a file declares in every build.
fn modules(text: &str) -> Vec<&str> {
    let (mut modules, mut is_conditional) = (Vec::new(), false);
    for line in text.lines() {
        if line.starts_with("#[") {
            is_conditional |= line.starts_with("#[cfg(");
            continue;
        }
        let declared =
            line.split_once("mod ").filter(|(before, _)| before.is_empty() || before.starts_with("pub"));
        let name = declared.and_then(|(_, rest)| rest.strip_suffix(';'));
        modules.extend(name.filter(|_| !is_conditional));
        is_conditional = false;
    }
    modules
}

/// The names in the code of a line: `a` and `b` in "[`a`], `b/`". Code in Markdown is between two backticks.
fn names(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split('`').skip(1).step_by(2);
    code.flat_map(|code| code.split(|c: char| !(c.is_alphanumeric() || c == '_')))
}
