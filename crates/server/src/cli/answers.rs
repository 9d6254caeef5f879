//! Answers to permission requests, typed while the agent is followed.

use std::future::pending;
use std::io;

use serde_json::Value;

use super::client::Client;
use super::open_requests;
use super::permission_request::ShownRequest;
use super::screen::{Screen, Style};
use super::typed::{TypedLines, can_type};
use super::{Exit, Failure};

/// The open permission requests of an agent, and the user who may answer them.
pub(crate) struct Answers<'a> {
    client: &'a Client,
    agent: &'a str,
    /// What was known of the agent at the beginning.
    known: Known,
    open: OpenRequests,
    /// The id of the request that was shown last.
    last_shown: String,
    lines: Option<TypedLines>,
    /// Whether the user can type.
    can_type: bool,
}

/// What is known of an agent when a command begins to follow it.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// It is a copy, so nobody can answer its requests.
    is_copy: bool,
    /// The last event of an agent that had ended. The requests up to there are settled.
    settled_until: u64,
    /// The open requests, if the command does not show the events from the beginning.
    open: Vec<ShownRequest>,
}

impl Known {
    /// Asks the server about an agent that is followed after the event `since`.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub(crate) async fn ask(client: &Client, id: &str, since: u64) -> Result<Self, Failure> {
        let agent: Value = client.get(&["api", "agents", id], &[]).await?.json().await?;
        let number = |key: &str| agent.get(key).and_then(Value::as_u64).unwrap_or_default();
        let has_ended = agent.get("endedAt").is_some_and(Value::is_string);
        // The events after `since` may not contain them.
        let is_missed = 0 < since && 0 < number("openQuestions");
        let open = if is_missed { open_requests::of_agent(client, id).await? } else { Vec::new() };
        Ok(Self {
            is_copy: agent.get("readOnly").and_then(Value::as_bool) == Some(true),
            settled_until: if has_ended { number("head") } else { 0 },
            open,
        })
    }
}

impl<'a> Answers<'a> {
    /// Shows the requests that are open already and how to answer them, if the user cannot type the answers here.
    pub(crate) fn new(client: &'a Client, agent: &'a str, known: Known, screen: &mut Screen) -> Self {
        let can_type = screen.is_live() && can_type();
        let open = OpenRequests::default();
        let mut answers =
            Self { client, agent, known, open, last_shown: String::new(), lines: None, can_type };
        for asked in std::mem::take(&mut answers.known.open) {
            if !can_type && !screen.json {
                answers.show(&asked, screen);
            }
            answers.open.requests.push(asked);
        }
        answers
    }

    /// Whether the user can type an answer.
    pub(crate) fn can_type(&self) -> bool {
        self.can_type
    }

    /// Shows a request, and how to answer it if the user cannot type the answer here. `number` is the number of its
    /// event.
    pub(crate) fn asked(&mut self, number: u64, asked: ShownRequest, screen: &mut Screen) {
        let is_over = number <= self.known.settled_until;
        if self.known.is_copy || is_over {
            asked.show(screen);
            if self.known.is_copy {
                screen.line(Style::Dim, "  (recorded)");
            }
            return;
        }
        if self.open.requests.iter().any(|open| open.request_id == asked.request_id) {
            // It was open at the beginning. If it was not shown then, it is shown with the prompt.
            return;
        }
        self.show(&asked, screen);
        self.open.requests.push(asked);
    }

    fn show(&mut self, asked: &ShownRequest, screen: &mut Screen) {
        asked.show(screen);
        if self.can_type {
            asked.show_more_answers(screen);
        } else {
            screen.line(Style::Dim, &format!("  {}", asked.command(self.client, self.agent)));
        }
        self.last_shown.clone_from(&asked.request_id);
    }

    /// Removes a request that is settled.
    pub(crate) fn settled(&mut self, request: &str) {
        self.open.remove(request);
    }

    /// Removes the requests of a turn that has ended. If the agent's process was lost, no event says that they are
    /// settled.
    pub(crate) fn turn_ended(&mut self) {
        self.open.requests.clear();
    }

    /// Asks for an answer to the oldest request. Returns false if none is open, or if the user cannot type.
    ///
    /// # Errors
    /// If the terminal cannot be read.
    pub(crate) fn prompt(&mut self, screen: &mut Screen) -> io::Result<bool> {
        let Some(asked) = self.open.requests.first().filter(|_| self.can_type) else { return Ok(false) };
        if self.open.prompted != asked.request_id {
            match &mut self.lines {
                Some(lines) => lines.discard(),
                None => self.lines = Some(TypedLines::listen()?),
            }
            if self.last_shown != asked.request_id {
                asked.show(screen);
                asked.show_more_answers(screen);
            }
            self.open.prompted.clone_from(&asked.request_id);
            self.last_shown.clone_from(&asked.request_id);
        }
        screen.prompt(&format!("answer ({}): ", asked.numbers()));
        Ok(true)
    }

    /// Waits for what the user types next. `None` if nothing can be typed any more.
    pub(crate) async fn typed(&mut self) -> Option<String> {
        match &mut self.lines {
            Some(lines) => lines.next().await,
            None => pending().await,
        }
    }

    /// Sends the answer that the user has typed, if the request that it answers is still open. `None` closes the input.
    ///
    /// # Errors
    /// [`Exit::Unreachable`] if no server answers. Other errors are shown.
    pub(crate) async fn answer(&mut self, line: Option<String>, screen: &mut Screen) -> Result<(), Failure> {
        screen.after_typed_line();
        self.can_type = line.is_some();
        let Some(oldest) = self.open.requests.first() else { return Ok(()) };
        let Some(line) = line else {
            screen.note(&format!("to answer: {}", oldest.command(self.client, self.agent)));
            return Ok(());
        };
        let Some(asked) = self.open.prompted() else {
            screen.note("that permission request is no longer open; what you typed was ignored");
            return Ok(());
        };
        let Some(answer) = asked.answer(&line) else {
            if !line.trim().is_empty() {
                screen.note(&format!("type {}, or the id or the name of an option", asked.numbers()));
            }
            return Ok(());
        };
        let path = ["api", "agents", self.agent, "permissions", &asked.request_id];
        let answered = self.client.post(&path, &answer).await;
        let is_over = match &answered {
            Ok(_) => true,
            Err(error) if error.exit == Exit::Unreachable => false,
            Err(error) => {
                screen.note(&error.to_string());
                // For example, somebody else was faster.
                matches!(error.code(), "already_resolved" | "not_found")
            }
        };
        if is_over {
            let settled = asked.request_id.clone();
            self.open.remove(&settled);
        }
        answered.map(drop).or_else(|error| if error.exit == Exit::Unreachable { Err(error) } else { Ok(()) })
    }
}

/// The open permission requests of an agent, and the one that the user answers.
#[derive(Debug, Default)]
struct OpenRequests {
    /// The oldest first.
    requests: Vec<ShownRequest>,
    /// The id of the request that the user was asked about last. Empty if none was yet.
    prompted: String,
}

impl OpenRequests {
    fn remove(&mut self, request: &str) {
        self.requests.retain(|asked| asked.request_id != request);
    }

    /// The request that a typed line answers. `None` if it was settled while the user typed: the line must not answer
    /// another request, which the user has not seen.
    fn prompted(&self) -> Option<&ShownRequest> {
        self.requests.iter().find(|asked| asked.request_id == self.prompted)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_typed_line_answers_only_the_request_that_the_user_was_asked_about() {
        let request = |id: &str| {
            let text = json!({ "requestId": id, "toolName": "Bash", "options": [] }).to_string();
            serde_json::from_str::<ShownRequest>(&text).unwrap()
        };
        let requests = vec![request("1-1"), request("1-2")];
        let mut open = OpenRequests { requests, prompted: "1-1".to_owned() };
        assert_eq!(open.prompted().unwrap().request_id, "1-1");
        open.remove("1-1");
        assert!(open.prompted().is_none(), "the user has not seen the second request");
        open.prompted = "1-2".to_owned();
        assert_eq!(open.prompted().unwrap().request_id, "1-2");
    }
}
