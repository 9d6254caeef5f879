//! Shows the events of an agent to a person.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::answers::Answers;
use super::excerpt::excerpt;
use super::permission_request::ShownRequest;
use super::screen::{Screen, Style};
use super::tool_input::told;

/// How many lines of a tool's result are shown.
const RESULT_LINES: usize = 6;

/// An event as the API returns it: the parts that are shown.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShownEvent {
    sequence_number: u64,
    content: Value,
    metadata: Metadata,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    event_type: String,
    #[serde(default)]
    message_id: Option<String>,
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    outcome: Option<String>,
    #[serde(default)]
    duration_ms: Option<u64>,
    #[serde(default)]
    cost_usd: Option<f64>,
    #[serde(default)]
    error: Option<ShownError>,
    #[serde(default)]
    images: Vec<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct ShownError {
    class: String,
}

/// Shows one agent, event by event.
#[derive(Debug, Default)]
pub(crate) struct EventPrinter {
    /// The message whose deltas have been shown.
    streamed: Option<String>,
    thinking: bool,
    pub(crate) events: u64,
    pub(crate) deltas: u64,
    /// Events that could not be decoded.
    pub(crate) unread: u64,
}

impl EventPrinter {
    /// Shows the event with that number. If it cannot be decoded, it is shown as received, so that nothing is hidden.
    pub(crate) fn show_text(
        &mut self,
        number: u64,
        event: &str,
        answers: &mut Answers<'_>,
        screen: &mut Screen,
    ) {
        match serde_json::from_str(event) {
            Ok(event) => self.show(&event, answers, screen),
            Err(error) => {
                self.unread += 1;
                screen.line(Style::Plain, event);
                screen.note(&format!("cannot decode event {number} ({error}); it is printed as received"));
            }
        }
    }

    fn show(&mut self, event: &ShownEvent, answers: &mut Answers<'_>, screen: &mut Screen) {
        self.events += 1;
        let text = event.content.as_str().unwrap_or_default();
        let was_thinking = std::mem::take(&mut self.thinking);
        match event.metadata.event_type.as_str() {
            "content_delta" => {
                if was_thinking {
                    screen.end_line();
                }
                self.streamed.clone_from(&event.metadata.message_id);
                self.deltas += 1;
                screen.text(Style::Plain, text);
            }
            "thinking_delta" => {
                self.thinking = true;
                self.streamed.clone_from(&event.metadata.message_id);
                self.deltas += 1;
                screen.text(Style::Dim, text);
            }
            "tool_input_delta" => self.streamed.clone_from(&event.metadata.message_id),
            "message" => self.message(event, screen),
            "tool_use" => {
                let tool = event.metadata.tool_name.as_deref().unwrap_or("tool");
                let input = event.content.get("input").map(told).unwrap_or_default();
                screen.line(Style::Bold, &format!("● {tool} {}", excerpt(&input, 1)));
            }
            "tool_result" => {
                let style = if event.metadata.is_error { Style::Bad } else { Style::Dim };
                let result = plain(&event.content);
                screen.line(style, &indent(&excerpt(&result, RESULT_LINES)));
            }
            "result" => {
                answers.turn_ended();
                show_result(event, screen);
            }
            "permission_resolved" => {
                let request = event.content.get("requestId").and_then(Value::as_str);
                answers.settled(request.unwrap_or_default());
                show_answer(event, screen);
            }
            "permission_request" => match ShownRequest::deserialize(&event.content) {
                Ok(asked) => answers.asked(event.sequence_number, asked, screen),
                Err(_) => screen.line(Style::Bold, &event.content.to_string()),
            },
            _ => show_other(event, text, screen),
        }
    }

    fn message(&mut self, event: &ShownEvent, screen: &mut Screen) {
        let streamed = self.streamed.is_some() && self.streamed == event.metadata.message_id;
        if !streamed {
            screen.line(Style::Plain, &plain(&event.content));
        }
        screen.end_line();
        self.streamed = None;
    }
}

fn show_result(event: &ShownEvent, screen: &mut Screen) {
    let outcome = event.metadata.outcome.as_deref().unwrap_or_default();
    let style = if outcome == "completed" { Style::Good } else { Style::Bad };
    let seconds = event.metadata.duration_ms.map(|ms| format!(" in {:.1} s", ms as f64 / 1000.0));
    let cost = event.metadata.cost_usd.map(|cost| format!(", ${cost:.4}"));
    let (seconds, cost) = (seconds.unwrap_or_default(), cost.unwrap_or_default());
    screen.line(style, &format!("— {outcome}{seconds}, last event {}{cost}", event.sequence_number));
}

fn show_other(event: &ShownEvent, text: &str, screen: &mut Screen) {
    match (event.metadata.error.as_ref(), event.metadata.event_type.as_str()) {
        (Some(error), _) => screen.line(Style::Bad, &format!("error ({}): {text}", error.class)),
        (None, "user_message") => {
            let images = match event.metadata.images.len() {
                0 => String::new(),
                1 => " [1 image]".to_owned(),
                count => format!(" [{count} images]"),
            };
            screen.line(Style::Bold, &format!("> {text}{images}"));
        }
        (None, "abandoned") => {
            screen.line(Style::Dim, "(the agent discarded the text above and is sending it again)");
        }
        (None, "api_retry") => screen.line(Style::Dim, "(the agent is retrying)"),
        _ => {}
    }
}

/// How a permission request was settled.
fn show_answer(event: &ShownEvent, screen: &mut Screen) {
    let said = |field: &str| event.content.get(field).and_then(Value::as_str);
    let several = event.content.get("optionIds").and_then(Value::as_array);
    let mut parts: Vec<_> = several.into_iter().flatten().filter_map(Value::as_str).collect();
    if parts.is_empty() {
        parts.extend(said("optionId"));
    }
    parts.extend(said("text"));
    let note = said("note").map(|note| format!(" ({note})")).unwrap_or_default();
    let answer = (!parts.is_empty()).then(|| parts.join(", ") + &note);
    let text = match (answer, said("by").unwrap_or_default()) {
        (Some(option), "timeout") => format!("no answer in time; the default was chosen: {option}"),
        (Some(option), by) => format!("answered: {option} (by {by})"),
        (None, "timeout") => "no answer in time".to_owned(),
        (None, "cancel") => "the turn was cancelled".to_owned(),
        (None, "agent") => "withdrawn by the agent".to_owned(),
        (None, _) => "dismissed".to_owned(),
    };
    screen.line(Style::Dim, &format!("  {text}"));
}

fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        other => other.to_string(),
    }
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
