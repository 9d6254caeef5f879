//! What product code never does: it hands nothing to a shell, and writes nothing into the log that users have said, or
//! that opens a door.

use crate::workspace::Source;

/// Programs that take their arguments apart.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"];

/// How what must not be logged is called here.
const UNSPEAKABLE: [&str; 18] = [
    "api_key",
    "authorization",
    "body",
    "content",
    "cookie",
    "delta",
    "env",
    "headers",
    "key",
    "line",
    "output",
    "prompt",
    "query",
    "raw",
    "secret",
    "stderr",
    "text",
    "token",
];

const LOGS: [&str; 4] = ["tracing::debug!(", "tracing::info!(", "tracing::warn!(", "tracing::error!("];

/// Looks at a file of product code.
pub(super) fn check(source: &Source, faults: &mut Vec<String>) {
    if !source.path.starts_with("crates/") || source.path.contains("/tests") {
        return;
    }
    for (number, line) in source.lines() {
        let named = |shell: &&&str| {
            line.contains(&format!("\"{shell}\"")) || line.contains(&format!("/bin/{shell}\""))
        };
        if let Some(shell) = SHELLS.iter().find(named) {
            faults.push(format!(
                "{}:{number}: {shell} is a shell or equivalent: start programs with arguments instead",
                source.path
            ));
        }
    }
    for log in LOGS {
        for (at, _) in source.text.match_indices(log) {
            let number = source.text[..at].matches('\n').count() + 1;
            if let Some(word) = logged(&source.text[at + log.len()..]) {
                faults.push(format!("{}:{number}: {word} must not be logged", source.path));
            }
        }
    }
}

/// A name among the arguments, up to the end of the call, that must not be there. What stands in quotes is said by us.
fn logged(arguments: &str) -> Option<&str> {
    let end = end_of_call(arguments);
    let quoted = arguments[..end].split('"').collect::<Vec<_>>();
    let code = quoted.into_iter().step_by(2);
    let mut words = code.flat_map(|part| part.split(|c: char| !c.is_alphanumeric() && c != '_'));
    words.find(|word| UNSPEAKABLE.contains(word))
}

fn end_of_call(arguments: &str) -> usize {
    let (mut depth, mut quoted) = (1_u32, false);
    for (at, c) in arguments.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    arguments.len()
}
