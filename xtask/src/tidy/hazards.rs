//! What product code must never do: pass anything to a shell, or log anything that users have said or that gives
//! access.

use crate::workspace::Source;

/// Programs that interpret their arguments as commands.
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ksh", "fish", "busybox"];

/// The names that our code uses for what must not be logged.
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

/// Checks a file, if it is product code.
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

/// The first forbidden name among the arguments, up to the end of the call. Text in quotes is our own and is ignored.
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
