//! Checks of a block without running it.

use std::collections::BTreeMap;
use std::path::Path;

use tokenrail_server::{Config, Flags};

use super::blocks::{Block, Mark, Page};

/// The faults in the blocks of a page, each with its line.
pub(super) fn faults(page: &Page, root: &Path) -> Vec<String> {
    let indented =
        page.indented.iter().map(|line| (*line, "indented code; use a fence with a language".to_owned()));
    let blocks = page.blocks.iter().filter_map(|block| Some((block.line, fault(block, page, root)?)));
    indented.chain(blocks).map(|(line, fault)| format!("{}:{line}: {fault}", page.name)).collect()
}

fn fault(block: &Block, page: &Page, root: &Path) -> Option<String> {
    if !block.is_closed {
        return Some("the block does not end".to_owned());
    }
    match &block.mark {
        Mark::Unknown(mark) => Some(format!("unknown mark {mark:?}")),
        Mark::NotRun(reason) => reason.is_empty().then(|| "the mark gives no reason".to_owned()),
        Mark::TestedIn(path) => tested_in(path, page, root),
        Mark::Excerpt(path) => excerpt(path, &block.text, root),
        Mark::File(name) if name.is_empty() || name.contains('/') => Some(format!("no file name: {name:?}")),
        Mark::Usual | Mark::File(_) => of_language(block),
    }
}

fn of_language(block: &Block) -> Option<String> {
    match block.language.as_str() {
        // A session runs commands; `text` is output or a picture.
        "sh" | "text" => None,
        "json" => json(&block.text),
        "toml" => configuration(&block.text),
        "" => Some("the block has no language".to_owned()),
        "js" | "tsx" | "python" | "rust" | "ini" | "yaml" | "nginx" | "caddy" | "dockerfile" | "sql" => {
            let is_file = matches!(block.mark, Mark::File(_));
            (!is_file).then(|| format!("a block of {} needs a mark", block.language))
        }
        language => Some(format!("unknown language {language:?}")),
    }
}

/// One JSON value, or several in a row.
fn json(text: &str) -> Option<String> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde_json::Value>();
    values.find_map(Result::err).map(|error| format!("not JSON: {error}"))
}

/// Reads the configuration as the server would.
fn configuration(text: &str) -> Option<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("tokenrail.toml");
    std::fs::write(&file, text).expect("a file");
    let flags = Flags { config: Some(file), ..Flags::default() };
    let env = BTreeMap::from([("HOME".to_owned(), folder.path().to_string_lossy().into_owned())]);
    Config::load(&flags, &env).err().map(|error| error.to_string())
}

/// Checks that the other test exists and reads this document.
fn tested_in(path: &str, page: &Page, root: &Path) -> Option<String> {
    let Ok(text) = std::fs::read_to_string(root.join(path)) else {
        return Some(format!("{path}: no such file"));
    };
    let name = page.name.rsplit('/').next().unwrap_or(&page.name);
    (!text.contains(name)).then(|| format!("{path} does not name {name}"))
}

/// Checks that each line is in the source. A line with `…` stands for what was left out.
fn excerpt(path: &str, text: &str, root: &Path) -> Option<String> {
    let Ok(source) = std::fs::read_to_string(root.join(path)) else {
        return Some(format!("{path}: no such file"));
    };
    let is_there = |line: &str| source.lines().any(|other| other.trim() == line);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.contains('…'));
    lines.find(|line| !is_there(line)).map(|line| format!("{line:?} is not in {path}"))
}
