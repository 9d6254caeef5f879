//! Foreign JSON for a client in JavaScript.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;
use tokenrail_domain::JsonText;

use crate::json::Json;

/// Foreign JSON, embedded unchanged, or as a string if the SDK would refuse it. The SDK's parser refuses any text in
/// which an object has the key `__proto__`, or the key `constructor` with a `prototype` in it. Such a text makes the
/// client refuse the whole stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ForeignJson<'a>(pub(crate) &'a JsonText);

impl Serialize for ForeignJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if is_refused(self.0.as_str()) {
            return serializer.serialize_str(self.0.as_str());
        }
        Json(self.0).serialize(serializer)
    }
}

fn is_refused(json: &str) -> bool {
    let names = json.contains("__proto__") || json.contains("constructor");
    // Escapes can hide a name.
    if !names && !json.contains("\\u00") {
        return false;
    }
    match serde_json::from_str(json) {
        Ok(value) => has_refused_key(&value),
        // serde_json cannot read this, for example because of an unpaired surrogate, which JavaScript accepts. The keys
        // are unknown, so the text search decides.
        Err(_) => names,
    }
}

fn has_refused_key(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            name == "__proto__"
                || (name == "constructor" && value.get("prototype").is_some())
                || has_refused_key(value)
        }),
        Value::Array(values) => values.iter().any(has_refused_key),
        _ => false,
    }
}

/// Returns the text of a JSON string, or the JSON text of any other value.
pub(crate) fn text_of(json: &JsonText) -> Cow<'_, str> {
    match serde_json::from_str::<String>(json.as_str()) {
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Borrowed(json.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_sdk_would_refuse_is_sent_as_text() {
        let written =
            |json: &str| serde_json::to_string(&ForeignJson(&JsonText::new_unchecked(json))).unwrap();
        for refused in [
            r#"{"__proto__":1}"#,
            r#"{"a":[{"__proto__":null}]}"#,
            r#"{"\u005f_proto__":1}"#,
            r#"{"constructor":{"prototype":{}}}"#,
            r#"{"a":"\ud83e"}"#,
        ] {
            assert_eq!(written(refused), serde_json::to_string(refused).unwrap());
        }
        for taken in [r#"{"a": 1.50}"#, r#""\"__proto__\":""#, r#"{"constructor":"x"}"#, r#"{"a":"\u00e9"}"#]
        {
            assert_eq!(written(taken), taken);
        }
    }

    #[test]
    fn the_text_of_a_string_is_what_it_says() {
        assert_eq!(text_of(&JsonText::new_unchecked(r#""a\n""#)), "a\n");
        assert_eq!(text_of(&JsonText::new_unchecked("[1]")), "[1]");
    }
}
