//! A public type has a name of its own: whoever searches for it finds one thing.

use std::collections::BTreeMap;

use crate::workspace::Source;

/// A type whose name a public type of the workspace has, too, is a fault. Only types outside of any block count. A
/// private type may have the name of one that only tests use, and the other way round.
pub(super) fn check(sources: &[Source], faults: &mut Vec<String>) {
    let mut public: BTreeMap<&str, String> = BTreeMap::new();
    let mut private = Vec::new();
    for source in sources.iter().filter(|source| source.path.starts_with("crates/") && super::is_code(source))
    {
        for (number, line) in source.lines() {
            let Some((name, is_public)) = declared_type(line) else { continue };
            let place = format!("{}:{number}", source.path);
            if !is_public {
                private.push((name, place));
            } else if let Some(first) = public.get(name) {
                faults.push(fault(name, &place, first));
            } else {
                public.insert(name, place);
            }
        }
    }
    public.retain(|_, place| !is_for_tests(place));
    for (name, place) in private.into_iter().filter(|(_, place)| !is_for_tests(place)) {
        faults.extend(public.get(name).map(|known| fault(name, &place, known)));
    }
}

fn is_for_tests(place: &str) -> bool {
    place.contains("/testing/") || place.contains("/tests/")
}

fn fault(name: &str, place: &str, first: &str) -> String {
    format!("{place}: {name} is also the name of a public type in {first}")
}

/// The name of the type that this line declares, and whether it is public.
fn declared_type(line: &str) -> Option<(&str, bool)> {
    let public = line.strip_prefix("pub ");
    let restricted = line.strip_prefix("pub(").and_then(|line| line.split_once(") ")).map(|(_, rest)| rest);
    let (declared, is_public) = (public.or(restricted).unwrap_or(line), public.is_some());
    let rest = ["struct ", "enum ", "trait ", "type "].iter().find_map(|kind| declared.strip_prefix(kind))?;
    let name =
        rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().filter(|name| !name.is_empty())?;
    Some((name, is_public))
}
