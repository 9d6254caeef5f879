//! No circles inside a crate: sibling modules do not import each other, neither directly nor through others.
//!
//! Each level is checked: the files and folders of a crate, and those of each folder. A name is followed through
//! re-exports to the module that defines it. Imports between a module and the modules inside it do not count.

use std::collections::{BTreeMap, BTreeSet};

use self::imports::{Import, imports};
use crate::workspace::Source;

mod imports;

/// The place of a module: the names from the root of its crate.
type Place = Vec<String>;

/// The maximum length of a chain of re-exports.
const IMPORTS_MAX: usize = 16;

/// The circles that are allowed: there are none. A line would have the folder, and the modules of the circle, ordered
/// by name. The check fails if a line is not needed.
const KNOWN: [(&str, &str); 0] = [];

/// The modules of one crate and what they import.
struct Crate<'a> {
    root: &'a str,
    modules: BTreeMap<Place, Vec<Import>>,
}

/// The sibling modules that each module imports, and the module inside it that contains the import.
type Neighbours = BTreeMap<String, BTreeMap<String, String>>;

pub(super) fn check(sources: &[Source], faults: &mut Vec<String>) {
    check_against(sources, &KNOWN, faults);
}

fn check_against(sources: &[Source], known: &[(&str, &str)], faults: &mut Vec<String>) {
    let mut found = BTreeSet::new();
    for root in roots(sources) {
        for (folder, modules, example) in Crate::read(root, sources).circles() {
            let circle = (folder, modules.join(", "));
            if !known.contains(&(&circle.0, &circle.1)) {
                let (folder, modules) = &circle;
                faults.push(format!("{folder}: {modules} import each other in a circle: {example}"));
            }
            found.insert(circle);
        }
    }
    for (folder, modules) in known {
        if !found.contains(&((*folder).to_owned(), (*modules).to_owned())) {
            faults.push(format!("{folder}: {modules} is no circle any more: remove it from {}", file!()));
        }
    }
}

/// The folders that contain the code of a crate.
fn roots(sources: &[Source]) -> BTreeSet<&str> {
    let root =
        |source: &'_ &Source| source.path.ends_with("/src/lib.rs") || source.path == "xtask/src/main.rs";
    sources.iter().filter(root).filter_map(|source| Some(source.path.rsplit_once('/')?.0)).collect()
}

/// The place of this file's module. `None` for tests and for programs beside a library.
fn place(file: &str) -> Option<Place> {
    let mut names: Place = file.strip_suffix(".rs")?.split('/').map(str::to_owned).collect();
    if names.iter().any(|name| name == "tests" || name == "bin") {
        return None;
    }
    if names.last().is_some_and(|name| matches!(name.as_str(), "lib" | "main" | "mod")) {
        names.pop();
    }
    Some(names)
}

impl<'a> Crate<'a> {
    fn read(root: &'a str, sources: &'a [Source]) -> Self {
        let inside = |source: &'a Source| Some((source, source.path.strip_prefix(root)?.strip_prefix('/')?));
        let files: Vec<_> = sources.iter().filter_map(inside).collect();
        let has_library = files.iter().any(|(_, file)| *file == "lib.rs");
        let files = files.into_iter().filter(|(_, file)| !(has_library && *file == "main.rs"));
        let modules = files.filter_map(|(source, file)| Some((place(file)?, imports(&source.text))));
        Self { root, modules: modules.collect() }
    }

    /// Each circle: its folder, its modules, and their imports.
    fn circles(&self) -> Vec<(String, Vec<String>, String)> {
        let mut levels: BTreeMap<Place, Neighbours> = BTreeMap::new();
        for (place, imports) in &self.modules {
            for import in imports {
                let Some(target) = self.target(place, import, 0) else { continue };
                let common = place.iter().zip(&target).take_while(|(left, right)| left == right).count();
                let (Some(from), Some(to)) = (place.get(common), target.get(common)) else { continue };
                let level = levels.entry(place[..common].to_vec()).or_default();
                level.entry(from.clone()).or_default().insert(to.clone(), place.join("::"));
            }
        }
        let mut found = Vec::new();
        for (level, edges) in &levels {
            let folder = [&[self.root.to_owned()], &level[..]].concat().join("/");
            for modules in circles(edges) {
                let example = example(edges, &modules);
                found.push((folder.clone(), modules.into_iter().map(str::to_owned).collect(), example));
            }
        }
        found
    }

    /// The module that defines what is imported. `None` if it is in another crate.
    fn target(&self, from: &Place, import: &Import, depth: usize) -> Option<Place> {
        let mut path = import.path.iter();
        let mut place = match import.path.first()?.as_str() {
            "crate" => {
                path.next();
                Place::new()
            }
            "self" => {
                path.next();
                from.clone()
            }
            "super" => from.clone(),
            name => {
                let child = [&from[..], &[name.to_owned()]].concat();
                // A module inside `from`. Any other name is that of another crate or of an item in `from`.
                self.modules.contains_key(&child).then(|| from.clone())?
            }
        };
        let rest: Vec<&String> = path.skip_while(|name| *name == "super" && place.pop().is_some()).collect();
        self.descend(place, &rest, depth)
    }

    /// Follows the names downwards from a module, and through re-exports.
    fn descend(&self, mut place: Place, names: &[&String], depth: usize) -> Option<Place> {
        for (at, name) in names.iter().enumerate() {
            let child = [&place[..], &[(*name).clone()]].concat();
            if self.modules.contains_key(&child) {
                place = child;
                continue;
            }
            let imports = self.modules.get(&place)?;
            let imported = imports.iter().find(|import| import.name() == Some(name.as_str()));
            return match imported.filter(|_| depth < IMPORTS_MAX) {
                Some(import) => {
                    let through = self.target(&place, import, depth + 1)?;
                    self.descend(through, &names[at + 1..], depth + 1)
                }
                None => Some(place),
            };
        }
        Some(place)
    }
}

/// The sets of modules in which each module reaches all others.
fn circles(edges: &Neighbours) -> Vec<Vec<&str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        edges.keys().map(|module| (module.as_str(), reached(edges, module))).collect();
    let mut left: BTreeSet<&str> = reach.keys().copied().collect();
    let mut found = Vec::new();
    while let Some(module) = left.pop_first() {
        let back = |other: &&&str| reach[module].contains(**other) && reach[**other].contains(module);
        let others: Vec<&str> = left.iter().filter(back).copied().collect();
        left.retain(|other| !others.contains(other));
        if !others.is_empty() {
            found.push([vec![module], others].concat());
        }
    }
    found
}

fn reached<'a>(edges: &'a Neighbours, from: &'a str) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        let next = edges.get(module).into_iter().flat_map(BTreeMap::keys).map(String::as_str);
        open.extend(next.filter(|next| found.insert(*next)));
    }
    found
}

/// The imports that form the circle, each with the module that contains it.
fn example(edges: &Neighbours, circle: &[&str]) -> String {
    let inside = edges.iter().filter(|(from, _)| circle.contains(&from.as_str()));
    let all = inside.flat_map(|(from, to)| {
        let to = to.iter().filter(|(to, _)| circle.contains(&to.as_str()));
        to.map(move |(to, by)| format!("{from} -> {to} ({by})"))
    });
    all.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(files: &[(&str, &str)], known: &[(&str, &str)]) -> Vec<String> {
        let source = |(path, text): &(&str, &str)| Source {
            path: format!("crates/a/src/{path}"),
            text: (*text).to_owned(),
        };
        let mut faults = Vec::new();
        check_against(&files.iter().map(source).collect::<Vec<_>>(), known, &mut faults);
        faults
    }

    #[test]
    fn modules_that_import_each_other_are_a_circle() {
        let files = [
            ("lib.rs", "mod b;\nmod c;\nmod d;"),
            ("b.rs", "use crate::c::{self, One, Two as Deux};"),
            ("c.rs", "fn one() -> crate::d::Three { crate::d::three() }"),
            ("d.rs", "use std::fmt;\nuse super::{b::Four, e};"),
        ];
        let fault = "crates/a/src: b, c, d import each other in a circle: b -> c (b), c -> d (c), d -> b (d)";
        assert_eq!(faults(&files, &[]), [fault]);
        assert_eq!(faults(&files, &[("crates/a/src", "b, c, d")]), [""; 0]);
    }

    #[test]
    fn a_circle_is_found_through_re_exports_and_inside_a_folder() {
        let files = [
            ("lib.rs", "mod b;\nmod c;\npub use b::inner::One;"),
            ("b.rs", "mod inner;\nmod other;\npub(crate) use other::Two;"),
            ("b/inner.rs", "use super::Two;"),
            ("b/other.rs", "use crate::{\n    One,\n    c::Three,\n};"),
            ("c.rs", "use crate::One;"),
        ];
        let inside = "crates/a/src/b: inner, other import each other in a circle: inner -> other (b::inner), \
                      other -> inner (b::other)";
        let outside = "crates/a/src: b, c import each other in a circle: b -> c (b::other), c -> b (c)";
        assert_eq!(faults(&files, &[]), [outside, inside]);
    }

    #[test]
    fn tests_comments_and_what_is_inside_a_module_do_not_count() {
        let files = [
            ("lib.rs", "mod b;\nmod c;"),
            ("b.rs", "mod inner;\nuse self::inner::One;\nuse crate::c::Two;"),
            ("b/inner.rs", "use super::Three;"),
            (
                "c.rs",
                "//! See [`crate::b`].\nconst TEXT: &str = \"crate::b\";\n\n#[cfg(test)]\nmod tests {\n    use crate::b::One;\n}\n",
            ),
            ("c/tests.rs", "use crate::b::One;"),
        ];
        assert_eq!(faults(&files, &[]), [""; 0]);
    }

    #[test]
    fn a_circle_that_is_no_more_leaves_the_list() {
        let files = [("lib.rs", "mod b;\nmod c;"), ("b.rs", "use crate::c::One;"), ("c.rs", "")];
        let fault = format!("crates/a/src: b, c is no circle any more: remove it from {}", file!());
        assert_eq!(faults(&files, &[("crates/a/src", "b, c")]), [fault]);
    }
}
