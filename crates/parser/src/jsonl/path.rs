//! The path of a value in a JSON object.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::fields::Raw;

/// The separator between the names of a path: `message.content`.
const SEPARATOR: char = '.';

/// The fields of an object, by name. If a name occurs twice, the second field counts.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Fields<'a>(#[serde(borrow)] HashMap<String, &'a RawValue>);

impl<'a> Fields<'a> {
    /// The value at a path of names. `None` if it is missing or null.
    pub(super) fn at(&self, path: &str) -> Raw<'a> {
        let found = match path.split_once(SEPARATOR) {
            None => self.0.get(path).copied()?,
            Some((first, rest)) => {
                let inner: Fields<'a> = serde_json::from_str(self.0.get(first)?.get()).ok()?;
                return inner.at(rest);
            }
        };
        (found.get() != "null").then_some(found)
    }
}
