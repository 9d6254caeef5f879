//! Links between the documents.

use std::path::Path;

use crate::workspace::Source;

/// Every relative link of a README, of `docs/` and of the documents at the root leads to a file, and its `#…` to a
/// heading there.
pub(super) fn check(source: &Source, root: &Path, faults: &mut Vec<String>) {
    let is_document =
        source.name() == "README.md" || source.path.starts_with("docs/") || !source.path.contains('/');
    if !is_document || !source.has_extension("md") {
        return;
    }
    let document = root.join(&source.path);
    let mut in_code = false;
    for (number, line) in source.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for link in targets(line) {
            if let Some(fault) = fault(&document, &source.text, link) {
                faults.push(format!("{}:{number}: {link}: {fault}", source.path));
            }
        }
    }
}

/// The targets of `](here)`, `src="here"` and `href="here"`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    [("](", ')'), ("src=\"", '"'), ("href=\"", '"')].into_iter().flat_map(move |(before, after)| {
        let words = line.split(before).skip(1);
        // A title may follow the target: `](file.md "title")`.
        words.filter_map(move |rest| rest.split(after).next()?.split_whitespace().next())
    })
}

fn fault(document: &Path, text: &str, link: &str) -> Option<&'static str> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    if file.is_empty() {
        return (!has_heading(text, heading)).then_some("no such heading");
    }
    let file = document.with_file_name("").join(file);
    if !file.exists() {
        return Some("no such file");
    }
    if heading.is_empty() || file.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let found = std::fs::read_to_string(&file).is_ok_and(|text| has_heading(&text, heading));
    (!found).then_some("no such heading")
}

fn has_heading(text: &str, anchor: &str) -> bool {
    let headings = text.lines().filter_map(|line| line.strip_prefix('#'));
    headings.map(|line| slug(line.trim_start_matches('#'))).any(|slug| slug == anchor)
}

/// The anchor of a heading, as code hosting sites build it.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).flat_map(char::to_lowercase).collect()
}
