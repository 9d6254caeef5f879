//! A public type has a name of its own: whoever searches for it finds one thing.

use std::collections::BTreeMap;

use crate::workspace::Source;

/// A type whose name another public type of the workspace has is a fault.
pub(super) fn check(sources: &[Source], faults: &mut Vec<String>) {
    let mut known = BTreeMap::new();
    for source in sources.iter().filter(|source| source.path.starts_with("crates/") && super::is_code(source))
    {
        for (number, line) in source.lines() {
            let Some(name) = public_type(line) else { continue };
            let place = format!("{}:{number}", source.path);
            if let Some(first) = known.get(name) {
                faults.push(format!("{place}: {name} is also the name of a public type in {first}"));
            } else {
                known.insert(name, place);
            }
        }
    }
}

/// The name of the public type that this line declares, outside of any block.
fn public_type(line: &str) -> Option<&str> {
    let declared = line.strip_prefix("pub ")?;
    let rest = ["struct ", "enum ", "trait ", "type "].iter().find_map(|kind| declared.strip_prefix(kind))?;
    rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().filter(|name| !name.is_empty())
}
