//! Reads the fields of a JSON object one by one, so that errors can name every invalid field.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use tokenrail_domain::{AgentId, JsonText};

use crate::error::{Code, FieldProblem, Problem};
use crate::json::readable::{Stumble, stumble};
use crate::query;

/// The fields of one JSON object, to be taken out one by one. It collects the errors.
pub(crate) struct Fields {
    fields: BTreeMap<String, Box<RawValue>>,
    errors: Vec<FieldProblem>,
}

impl Fields {
    /// Splits a JSON object into its fields. Fields that are not taken out are ignored.
    pub(crate) fn read(body: &[u8], depth: usize) -> Result<Self, Problem> {
        let text = text_of(body)?;
        if depth < nesting(text) {
            return Err(malformed(&format!("the body is nested more than {depth} levels deep")));
        }
        let value: &RawValue = serde_json::from_str(text).map_err(|_| malformed("not valid JSON"))?;
        if !value.get().starts_with('{') {
            return Err(not_an_object());
        }
        let all = Picker { wanted: None, large: None };
        let picked = serde_json::Deserializer::from_str(text).deserialize_map(all);
        let (fields, _) = picked.map_err(|_| match stumble(text) {
            Some(Stumble::HalfPair) => malformed("a field name contains an unpaired surrogate"),
            _ => malformed("the body contains a field twice"),
        })?;
        Ok(Self { fields, errors: Vec::new() })
    }

    /// Reads the `wanted` fields of a JSON object, and returns the field `large` unparsed, without a copy. All other
    /// fields are skipped, regardless of their size and nesting.
    pub(crate) fn pick<'a>(
        body: &'a [u8],
        wanted: &[&str],
        large: &str,
    ) -> Result<(Self, Option<&'a RawValue>), Problem> {
        let text = text_of(body)?;
        let mut json = serde_json::Deserializer::from_str(text);
        let picked = json.deserialize_map(Picker { wanted: Some(wanted), large: Some(large) });
        match picked.and_then(|picked| json.end().map(|()| picked)) {
            Ok((fields, large)) => Ok((Self { fields, errors: Vec::new() }, large)),
            Err(error) if !error.is_data() => Err(malformed("not valid JSON")),
            Err(_) if text.trim_start().starts_with('{') => Err(malformed("the body contains a field twice")),
            Err(_) => Err(not_an_object()),
        }
    }

    /// An optional string. `check` returns what is wrong with it.
    pub(crate) fn text(
        &mut self,
        name: &str,
        check: impl FnOnce(&str) -> Option<&'static str>,
    ) -> Option<String> {
        let text: String = self.take(name, "must be a string")?;
        if let Some(wrong) = check(&text) {
            self.errors.push(FieldProblem::body(name, wrong));
        }
        Some(text)
    }

    /// A required string.
    pub(crate) fn required_text(
        &mut self,
        name: &str,
        check: impl FnOnce(&str) -> Option<&'static str>,
    ) -> String {
        if !self.fields.contains_key(name) {
            self.errors.push(FieldProblem::body(name, "must be present"));
        }
        self.text(name, check).unwrap_or_default()
    }

    /// An optional list of strings. `check` returns what is wrong with it.
    pub(crate) fn texts(
        &mut self,
        name: &str,
        check: impl FnOnce(&[String]) -> Option<&'static str>,
    ) -> Option<Vec<String>> {
        let texts: Vec<String> = self.take(name, "must be a list of strings")?;
        if let Some(wrong) = check(&texts) {
            self.errors.push(FieldProblem::body(name, wrong));
        }
        Some(texts)
    }

    /// Takes a field out if it is `null`. Returns whether it was.
    pub(crate) fn take_null(&mut self, name: &str) -> bool {
        let is_null = self.fields.get(name).is_some_and(|value| value.get() == "null");
        if is_null {
            self.fields.remove(name);
        }
        is_null
    }

    /// An optional value. `null` counts as absent.
    pub(crate) fn optional<T: for<'de> Deserialize<'de>>(
        &mut self,
        name: &str,
        expected: &'static str,
    ) -> Option<T> {
        self.take_null(name);
        self.take(name, expected)
    }

    /// The length of a field as it was sent. 0 if it is absent.
    pub(crate) fn bytes_of(&self, name: &str) -> usize {
        self.fields.get(name).map_or(0, |value| value.get().len())
    }

    /// Whether the field is there, whatever its value is, and was not taken out.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    /// Whether there are no errors so far.
    pub(crate) fn are_good(&self) -> bool {
        self.errors.is_empty()
    }

    /// Records that a field is invalid.
    pub(crate) fn refuse(&mut self, name: &str, wrong: impl Into<String>) {
        self.errors.push(FieldProblem::body(name, wrong));
    }

    /// Takes over the errors of an object inside this one, at this place.
    pub(crate) fn refuse_all(&mut self, place: &str, inner: Self) {
        let outer = |error: FieldProblem| {
            let pointer = error.pointer.map(|pointer| format!("/{place}{pointer}"));
            FieldProblem { pointer, ..error }
        };
        self.errors.extend(inner.errors.into_iter().map(outer));
    }

    /// An optional value, as it was sent.
    pub(crate) fn given(&mut self, name: &str, expected: &'static str) -> Option<Box<RawValue>> {
        self.take(name, expected)
    }

    pub(crate) fn flag(&mut self, name: &str) -> Option<bool> {
        self.take(name, "must be true or false")
    }

    pub(crate) fn real(
        &mut self,
        name: &str,
        check: impl FnOnce(f64) -> Option<&'static str>,
    ) -> Option<f64> {
        let number: f64 = self.take(name, "must be a number")?;
        if let Some(wrong) = check(number) {
            self.errors.push(FieldProblem::body(name, wrong));
        }
        Some(number)
    }

    pub(crate) fn object(&mut self, name: &str) -> Option<JsonText> {
        let value: Box<RawValue> = self.take(name, "must be an object")?;
        let wrong = match stumble(value.get()) {
            _ if !value.get().starts_with('{') => "must be an object".to_owned(),
            Some(stumble) => stumble.to_string(),
            None => return Some(JsonText::new_unchecked(value.get())),
        };
        self.errors.push(FieldProblem::body(name, wrong));
        None
    }

    /// An optional object. `null` counts as absent.
    pub(crate) fn optional_object(&mut self, name: &str) -> Option<JsonText> {
        self.take_null(name);
        self.object(name)
    }

    /// The required field `agentId`. A malformed id is not an error here: it is `None`, and so an unknown agent.
    pub(crate) fn agent(&mut self) -> Option<AgentId> {
        self.required_text("agentId", |_| None).parse().ok()
    }

    pub(crate) fn cursor(&mut self, name: &str) -> Result<Option<u64>, Problem> {
        let Some(value) = self.fields.remove(name).filter(|value| value.get() != "null") else {
            return Ok(None);
        };
        query::cursor(value.get()).map(Some)
    }

    /// Removes all fields that are `null`. Some clients send `null` for an absent field.
    pub(crate) fn forget_nulls(&mut self) {
        self.fields.retain(|_, value| value.get() != "null");
    }

    /// An optional whole number, 0 or greater.
    pub(crate) fn number(&mut self, name: &str) -> Option<u64> {
        self.take(name, "must be a whole number, 0 or greater")
    }

    /// Fails if any of the fields taken out so far is invalid.
    pub(crate) fn check(&mut self) -> Result<(), Problem> {
        let errors = std::mem::take(&mut self.errors);
        if errors.is_empty() { Ok(()) } else { Err(Problem::fields(errors)) }
    }

    /// Fails if any of the fields taken out is invalid.
    pub(crate) fn finish(self) -> Result<(), Problem> {
        if self.errors.is_empty() { Ok(()) } else { Err(Problem::fields(self.errors)) }
    }

    fn take<T: for<'de> Deserialize<'de>>(&mut self, name: &str, expected: &'static str) -> Option<T> {
        let value = self.fields.remove(name)?;
        if value.get() == "null" {
            self.errors.push(FieldProblem::body(name, expected));
            return None;
        }
        if let Ok(value) = serde_json::from_str(value.get()) {
            return Some(value);
        }
        // A JSON string that cannot be read as text contains an unpaired surrogate.
        let half = stumble(value.get()).filter(|_| value.get().starts_with('"'));
        self.errors.push(FieldProblem::body(name, half.map_or(expected.to_owned(), |half| half.to_string())));
        None
    }
}

fn text_of(body: &[u8]) -> Result<&str, Problem> {
    std::str::from_utf8(body).map_err(|_| malformed("not valid UTF-8"))
}

fn malformed(detail: &str) -> Problem {
    Problem::new(Code::MalformedJson, detail)
}

fn not_an_object() -> Problem {
    let error = FieldProblem { pointer: Some(String::new()), ..FieldProblem::body("", "must be an object") };
    Problem::fields(vec![error])
}

/// Reads an object, and rejects duplicates of the fields that it keeps, because it is impossible to know which of two
/// is meant.
struct Picker<'n> {
    /// The fields to keep: all of them if it is `None`. Skipping the others takes no stack.
    wanted: Option<&'n [&'n str]>,
    /// The field to keep without a copy.
    large: Option<&'n str>,
}

impl<'de> Visitor<'de> for Picker<'_> {
    type Value = (BTreeMap<String, Box<RawValue>>, Option<&'de RawValue>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut fields, mut large) = (BTreeMap::new(), None);
        while let Some(name) = map.next_key::<String>()? {
            let twice = if self.large == Some(name.as_str()) {
                large.replace(map.next_value()?).is_some()
            } else if self.wanted.is_none_or(|wanted| wanted.contains(&&*name)) {
                fields.insert(name, map.next_value()?).is_some()
            } else {
                map.next_value::<IgnoredAny>()?;
                false
            };
            if twice {
                return Err(A::Error::custom("duplicate field"));
            }
        }
        Ok((fields, large))
    }
}

/// The nesting depth of JSON.
pub(crate) fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
