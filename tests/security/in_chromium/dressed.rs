//! Variants of the scripts in the corpus.

use super::corpus::SCRIPTS;

/// Each script unchanged, and its variants: tags in mixed case, other spaces, inside Markdown.
pub(super) fn dressed() -> Vec<String> {
    let forms: [fn(&str) -> String; 5] = [
        strange_letters,
        |script| script.replace(' ', "/"),
        |script| format!("> - **{script}**"),
        |script| format!("| a | b |\n| --- | --- |\n| {script} | `{script}` |"),
        |script| format!("[{script}](https://evil.test \"{script}\")"),
    ];
    let mut all: Vec<String> = SCRIPTS.map(str::to_owned).to_vec();
    for form in forms {
        all.extend(
            SCRIPTS.iter().map(|script| form(script)).filter(|form| !SCRIPTS.contains(&form.as_str())),
        );
    }
    all
}

/// Writes the names of tags in mixed case.
fn strange_letters(script: &str) -> String {
    let (mut in_name, mut upper) = (false, false);
    let change = |letter: char| {
        in_name = letter == '<' || in_name && (letter == '/' || letter.is_ascii_alphanumeric());
        upper = !upper;
        if in_name && upper { letter.to_ascii_uppercase() } else { letter }
    };
    script.chars().map(change).collect()
}
