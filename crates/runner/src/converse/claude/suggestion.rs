//! What Claude Code suggests to allow from now on.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::converse::rpc::text;

/// What would be allowed from now on, in words. `None` if nothing is suggested, or if a suggestion cannot be put into
/// words: users must not allow something that they cannot see.
pub(super) fn suggested(suggestions: Option<&RawValue>) -> Option<String> {
    let suggestions: Vec<Suggestion<'_>> = serde_json::from_str(suggestions?.get()).ok()?;
    let words = suggestions.iter().map(Suggestion::words).collect::<Option<Vec<_>>>()?;
    (!words.is_empty()).then(|| format!("Always {}", words.join(", ")))
}

/// A permission update that the program suggests.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Suggestion<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow)]
    behavior: Option<&'a RawValue>,
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(borrow)]
    mode: Option<&'a RawValue>,
    #[serde(default)]
    directories: Vec<String>,
    #[serde(borrow)]
    destination: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    tool_name: String,
    rule_content: Option<String>,
}

impl Suggestion<'_> {
    fn words(&self) -> Option<String> {
        let words = match text(self.kind)?.as_str() {
            "addRules" if text(self.behavior).as_deref() == Some("allow") && !self.rules.is_empty() => {
                let rules: Vec<_> = self.rules.iter().map(Rule::words).collect();
                format!("allow {}", rules.join(", "))
            }
            "addDirectories" if !self.directories.is_empty() => {
                format!("allow access to {}", self.directories.join(", "))
            }
            "setMode" => match text(self.mode)?.as_str() {
                "acceptEdits" => "allow edits".to_owned(),
                mode => format!("use the mode {mode}"),
            },
            _ => return None,
        };
        let where_to = match text(self.destination)?.as_str() {
            "session" => "(for this session)".to_owned(),
            settings => format!("(saved in {settings})"),
        };
        Some(format!("{words} {where_to}"))
    }
}

impl Rule {
    fn words(&self) -> String {
        match &self.rule_content {
            Some(content) => format!("{}({content})", self.tool_name),
            None => self.tool_name.clone(),
        }
    }
}
