//! The length of functions of the page and the client library. Clippy checks those in Rust.

use crate::workspace::Source;

/// How many lines a function may have, as in `clippy.toml`.
const LINES_MAX: usize = 60;

/// Checks the functions at the top level of files in TypeScript. What is inside of them counts as a part of them.
pub(super) fn check(sources: &[Source], faults: &mut Vec<String>) {
    for source in sources.iter().filter(|source| is_product(source)) {
        for (start, lines) in functions(&source.text).filter(|(_, lines)| LINES_MAX < *lines) {
            let path = &source.path;
            faults.push(format!("{path}:{start} begins a function of {lines} lines, more than {LINES_MAX}"));
        }
    }
}

/// Code in TypeScript that is not a test.
pub(super) fn is_product(source: &Source) -> bool {
    let is_typescript = source.has_extension("ts") || source.has_extension("tsx");
    is_typescript && source.path.starts_with("crates/web/") && source.path.contains("/src/")
}

/// The number of the first line of each function, and how many lines it has.
fn functions(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let starts: Vec<usize> = (0..lines.len()).filter(|at| begins(lines[*at])).collect();
    starts.into_iter().map(move |start| {
        let end = (start + 1..lines.len()).find(|at| ends(lines[*at])).unwrap_or(lines.len());
        (start + 1, end + 1 - start)
    })
}

fn begins(line: &str) -> bool {
    let words = line.strip_prefix("export ").unwrap_or(line);
    let words = words.strip_prefix("default ").unwrap_or(words);
    let words = words.strip_prefix("async ").unwrap_or(words);
    let is_function = words.starts_with("function ") && !line.ends_with('}');
    let is_value = words.starts_with("const ") && line.ends_with('{') && is_callable(words);
    is_function || is_value
}

fn is_callable(words: &str) -> bool {
    words.contains("=> {") || words.contains("= function") || words.contains("(function")
}

/// Whether a line closes what the function opened. `}: Props) {` ends only its parameters.
fn ends(line: &str) -> bool {
    line.starts_with('}') && !line.ends_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(path: &str, text: String) -> Vec<String> {
        let mut faults = Vec::new();
        check(&[Source { path: path.to_owned(), text }], &mut faults);
        faults
    }

    #[test]
    fn a_function_may_have_as_many_lines_as_clippy_allows() {
        let body = |lines: usize| "  a();\n".repeat(lines);
        let path = "crates/web/page/src/a.tsx";
        for (begin, end) in [
            ("export function A() {\n", "}\n"),
            ("const a = memo(function A() {\n", "});\n"),
            ("export const a = async () => {\n", "};\n"),
            ("export default async function A() {\n", "}\n"),
        ] {
            let text = |lines| format!("// One.\n{begin}{}{end}", body(lines));
            assert_eq!(faults(path, text(LINES_MAX - 2)), [""; 0], "{begin}");
            let fault = format!("{path}:2 begins a function of 61 lines, more than 60");
            assert_eq!(faults(path, text(LINES_MAX - 1)), [fault], "{begin}");
        }
    }

    #[test]
    fn parameters_on_their_own_lines_are_a_part_of_the_function() {
        let text = format!("function a({{\n  b,\n}}: Props) {{\n{}}}\n", "  c();\n".repeat(57));
        let fault = "crates/web/page/src/a.ts:1 begins a function of 61 lines, more than 60";
        assert_eq!(faults("crates/web/page/src/a.ts", text), [fault]);
    }

    #[test]
    fn a_value_is_no_function_and_a_test_is_no_product() {
        let table = format!("const a = {{\n{}}};\n", "  b: 1,\n".repeat(80));
        assert_eq!(faults("crates/web/page/src/a.ts", table), [""; 0]);
        let test = format!("function a() {{\n{}}}\n", "  b();\n".repeat(80));
        assert_eq!(faults("crates/web/page/test/a.test.ts", test), [""; 0]);
    }
}
