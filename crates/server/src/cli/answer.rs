//! `tokenrail answer`: an answer to a permission request of an agent.

use std::fmt::Write as _;

use clap::Args;
use serde_json::{Value, json};

use super::agent_id::AgentArg;
use super::client::Client;
use super::open_requests;
use super::permission_request::ShownRequest;
use super::screen::{Screen, Style, counted};
use super::{Exit, Failure};
use crate::config::Config;

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    agent: AgentArg,
    /// The id of the permission request, such as 1-1. If the agent has exactly one open request, you need not give
    /// REQUEST to answer it: `tokenrail answer ID OPTION`
    #[arg(required_unless_present = "text")]
    request: Option<String>,
    /// The id of the option, such as `allow`; `tokenrail questions` shows the ids. You can give several if the request
    /// accepts that. To dismiss the request, so that the agent gets no permission, give REQUEST, but neither OPTION nor
    /// `--text`
    #[arg(value_name = "OPTION")]
    options: Vec<String>,
    /// Tell the agent why you reject the request. The request must accept notes, and you must choose an option that
    /// rejects the request
    #[arg(long, value_name = "TEXT", requires = "request", conflicts_with = "text")]
    note: Option<String>,
    /// Answer in your own words, if the request accepts text
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

/// What a user replies.
#[derive(Debug, PartialEq, Eq)]
struct Reply {
    options: Vec<String>,
    note: Option<String>,
    text: Option<String>,
}

pub(crate) async fn answer(config: &Config, args: AnswerArgs, screen: &mut Screen) -> Result<Exit, Failure> {
    let AnswerArgs { agent, request, options, note, text } = args;
    let (request, options) = told_apart(request, options);
    if note.is_some() && options.is_empty() {
        return Err(Failure::new(Exit::Usage, "a note needs an option that rejects, such as reject"));
    }
    let reply = Reply { options, note, text };
    let client = Client::reach(config).await?;
    let id = agent.find(&client).await?;
    let request = match request {
        Some(request) => request,
        None => the_only_one(&id, open_requests::of_agent(&client, &id).await?)?,
    };
    let answer = client.post(&["api", "agents", &id, "permissions", &request], &reply.body()).await?;
    let is_pending = answer.get("state").and_then(Value::as_str) == Some("pending");
    let text = match reply.words() {
        _ if screen.json => answer.to_string(),
        Some(words) if is_pending => {
            format!("answered {request} with {words}; the agent has not accepted the answer yet")
        }
        Some(words) => format!("answered {request}: {words}"),
        None if is_pending => format!("dismissed {request}; the agent has not accepted that yet"),
        None => format!("dismissed {request}"),
    };
    screen.line(Style::Plain, &text);
    Ok(Exit::Completed)
}

/// The request that the user names, if any, and the options. The id of a request has a form that no option has.
fn told_apart(first: Option<String>, mut options: Vec<String>) -> (Option<String>, Vec<String>) {
    match first {
        Some(first) if !is_request(&first) => {
            options.insert(0, first);
            (None, options)
        }
        request => (request, options),
    }
}

/// Whether a word has the form of the id of a request: the number of a run, and the number of a request in it.
fn is_request(word: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    word.split_once('-').is_some_and(|(run, number)| is_number(run) && is_number(number))
}

/// The request that is meant if the user names none.
fn the_only_one(agent: &str, mut open: Vec<ShownRequest>) -> Result<String, Failure> {
    if open.len() <= 1 {
        return open.pop().map(|only| only.request_id).ok_or_else(|| {
            let hint = format!("the agent {agent} has no open permission request (not_found)");
            Failure::new(Exit::Failed, hint).coded("not_found")
        });
    }
    let count = counted(open.len() as u64, "open permission request");
    let mut message = format!("the agent {agent} has {count}; name one of them before the option:");
    for asked in open {
        // Writing to a string cannot fail.
        let _ = write!(message, "\n  {}  {}", asked.request_id, asked.title());
    }
    Err(Failure::new(Exit::Failed, message).coded("ambiguous_request"))
}

impl Reply {
    /// The body of the request.
    fn body(&self) -> Value {
        let mut body = match &self.options[..] {
            [] if self.text.is_none() => json!({ "cancelled": true }),
            [] => json!({}),
            [option] => json!({ "optionId": option }),
            several => json!({ "optionIds": several }),
        };
        for (name, text) in [("text", &self.text), ("note", &self.note)] {
            if let Some(text) = text {
                body[name] = json!(text);
            }
        }
        body
    }

    /// The answer in words. `None` if nothing is chosen.
    fn words(&self) -> Option<String> {
        let note = self.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
        let parts: Vec<_> = self.options.iter().chain(&self.text).map(String::as_str).collect();
        (!parts.is_empty()).then(|| parts.join(", ") + &note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_a_request_only_if_it_has_the_form_of_one() {
        let read = |words: &[&str]| {
            let mut words = words.iter().map(|word| (*word).to_owned());
            told_apart(words.next(), words.collect())
        };
        assert_eq!(read(&["1-1", "allow"]), (Some("1-1".to_owned()), vec!["allow".to_owned()]));
        assert_eq!(read(&["12-3"]), (Some("12-3".to_owned()), vec![]));
        assert_eq!(read(&["allow", "x"]), (None, vec!["allow".to_owned(), "x".to_owned()]));
        for option in ["answer_1", "1", "-1", "1-", "1-a", "allow-1"] {
            assert_eq!(read(&[option]), (None, vec![option.to_owned()]));
        }
        assert_eq!(read(&[]), (None, vec![]));
    }
}
