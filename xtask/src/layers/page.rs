//! The dependency rule of the web page: which folders a folder may import from. There are no circles, and the list of
//! agents and a conversation do not know each other.

use crate::workspace::Source;

const PAGE: &str = "crates/web/page/src/";

/// Each folder of the page, and the folders that its files may import from.
const MAY_IMPORT: [(&str, &[&str]); 11] = [
    ("ui", &[]),
    ("connection", &[]),
    ("markdown", &["ui"]),
    ("content", &["ui", "markdown"]),
    ("agent", &["ui"]),
    ("prompt", &["ui", "connection", "content"]),
    ("launch", &["ui", "connection", "content", "prompt"]),
    ("replay", &["ui"]),
    ("conversation", &["ui", "connection", "markdown", "content", "agent", "prompt", "launch", "replay"]),
    ("agents", &["ui", "connection", "content", "agent", "prompt", "launch"]),
    ("app", &["ui", "connection", "agent", "prompt", "launch", "conversation", "agents"]),
];

pub(super) fn check(sources: &[Source], faults: &mut Vec<String>) {
    for source in sources.iter().filter(|source| source.has_extension("ts") || source.has_extension("tsx")) {
        let file = source.path.strip_prefix(PAGE);
        // The files beside the folders start the page.
        let Some((folder, rest)) = file.and_then(|file| file.split_once('/')) else { continue };
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(known, _)| *known == folder) else {
            faults.push(format!("{PAGE}{folder} is missing from the table in {}", file!()));
            continue;
        };
        for other in imports(&source.text).filter_map(|path| folder_of(path, rest)) {
            if other != folder && !allowed.contains(&other) {
                faults.push(format!("{} must not import from {other}/: see {}", source.path, file!()));
            }
        }
    }
}

/// The paths that a file imports from.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let parts = ["from \"", "import \"", "import(\""];
    let paths = parts.into_iter().flat_map(move |part| text.split(part).skip(1));
    paths.filter_map(|rest| rest.split_once('"')).map(|(path, _)| path)
}

/// The folder of the page that contains the imported file, if it is another one. `file` is the path of the importing
/// file in its own folder.
fn folder_of<'p>(import: &'p str, file: &str) -> Option<&'p str> {
    let out = "../".repeat(file.matches('/').count() + 1);
    import.strip_prefix(&*out)?.split_once('/').map(|(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(file: &str, text: &str) -> Vec<String> {
        let mut faults = Vec::new();
        check(&[Source { path: format!("{PAGE}{file}"), text: text.to_owned() }], &mut faults);
        faults
    }

    #[test]
    fn a_folder_imports_only_from_those_below_it() {
        let text = r#"import { a } from "react"; import { b } from "../ui/b.ts"; import c from "./c/d.ts";"#;
        assert_eq!(faults("agents/a.ts", text), [""; 0]);
        for (file, import) in [
            ("agents/a.ts", r#"import { b } from "../conversation/b.ts";"#),
            ("agents/a.ts", r#"const b = import("../conversation/b.ts");"#),
            ("agents/groups/a.tsx", "import {\n  b,\n} from \"../../conversation/b.ts\";"),
            ("ui/a.ts", r#"import "../conversation/b.ts";"#),
        ] {
            let fault = format!("{PAGE}{file} must not import from conversation/: see {}", file!());
            assert_eq!(faults(file, import), [fault]);
        }
    }

    #[test]
    fn a_new_folder_gets_a_line_in_the_table() {
        assert_eq!(faults("new/a.ts", ""), [format!("{PAGE}new is missing from the table in {}", file!())]);
        assert_eq!(faults("main.tsx", r#"import "./app/b.ts";"#), [""; 0]);
    }
}
