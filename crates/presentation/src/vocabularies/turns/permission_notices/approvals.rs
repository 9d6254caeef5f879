//! The permission requests of one turn, for clients that know only approvals: a tool call is approved, or it is not.

use std::collections::BTreeMap;

use super::{AskedPermission, Settling};

/// The open permission requests that a client has received, by request id.
#[derive(Debug, Default)]
pub(crate) struct Approvals(BTreeMap<String, Approval>);

#[derive(Debug)]
struct Approval {
    call: String,
    /// The options that allow the tool call.
    allowing: Vec<String>,
}

/// How a permission request was settled.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) call: String,
    pub(crate) approved: bool,
}

impl Approvals {
    /// Adds a permission request about `call`. It replaces an older one, because a client knows only one for each call.
    pub(crate) fn ask(&mut self, request: &AskedPermission, call: &str) {
        self.0.retain(|_, open| open.call != call);
        let allowing = request.allowing().map(str::to_owned).collect();
        self.0.insert(request.request_id.clone(), Approval { call: call.to_owned(), allowing });
    }

    /// Forgets the permission requests about calls that are not known.
    pub(crate) fn retain(&mut self, is_known: impl Fn(&str) -> bool) {
        self.0.retain(|_, open| is_known(&open.call));
    }

    /// Removes a settled permission request, and returns its verdict. `None` if the client does not know the request.
    pub(crate) fn settle(&mut self, settling: &Settling) -> Option<Verdict> {
        let Approval { call, allowing } = self.0.remove(&settling.request_id)?;
        let options = settling.option_ids.as_deref().unwrap_or(settling.option_id.as_slice());
        // A text is an answer to a question of the agent.
        let is_answered = !options.is_empty() || settling.text.is_some();
        let approved = is_answered && options.iter().all(|option| allowing.contains(option));
        Some(Verdict { call, approved })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Settles a request like this. Returns whether clients see it as approved, and which reason they see.
    fn settled(how: &Value) -> (bool, String) {
        let request = json!({
            "requestId": "1-1", "toolName": "AskUserQuestion", "input": {},
            "options": [
                {"optionId": "a", "kind": "allow_once"},
                {"optionId": "b", "kind": "allow_once"},
                {"optionId": "no", "kind": "reject_once"},
            ],
        });
        let mut settling = json!({"requestId": "1-1", "by": "user"});
        settling.as_object_mut().unwrap().extend(how.as_object().unwrap().clone());
        let mut approvals = Approvals::default();
        approvals.ask(&serde_json::from_value(request).unwrap(), "call");
        let settling: Settling = serde_json::from_value(settling).unwrap();
        (approvals.settle(&settling).unwrap().approved, settling.reason().to_owned())
    }

    #[test]
    fn several_answers_and_a_text_approve_and_a_note_is_the_reason_of_a_rejection() {
        let by_user = |approved| (approved, "user".to_owned());
        assert_eq!(settled(&json!({"optionId": "a"})), by_user(true));
        assert_eq!(settled(&json!({"optionId": "a", "optionIds": ["a", "b"]})), by_user(true));
        assert_eq!(settled(&json!({"optionId": "a", "optionIds": ["a", "b"], "text": "t"})), by_user(true));
        assert_eq!(settled(&json!({"text": "t"})), by_user(true));
        assert_eq!(settled(&json!({})), by_user(false));
        assert_eq!(settled(&json!({"optionId": "no"})), by_user(false));
        assert_eq!(settled(&json!({"optionId": "a", "optionIds": ["a", "no"]})), by_user(false));
        assert_eq!(settled(&json!({"optionId": "no", "note": "why"})), (false, "why".to_owned()));
    }
}
