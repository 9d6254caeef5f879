//! Tool calls. Each update adds to what is known of a call. A call is emitted once.

use tokenrail_domain::{JsonText, Said, ToolCall, ToolResult, UnifiedPatch};

use super::AcpParser;
use super::lines::ToolUpdate;
use super::shown;
use super::terminals::Terminals;
use crate::fields::{self, Raw};
use crate::patches;

/// The known state of one tool call.
#[derive(Debug, Default)]
pub(super) struct Call {
    name: Option<String>,
    title: String,
    kind: String,
    /// Never an empty object: agents start a call this way if its input follows later.
    input: Option<JsonText>,
    locations: Option<JsonText>,
    content: Option<JsonText>,
    output: Option<JsonText>,
    terminals: Terminals,
    patch: Option<UnifiedPatch>,
    stage: Stage,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    #[default]
    Hidden,
    Said,
    Returned,
}

/// The source of an update of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// `tool_call`: its input may be incomplete.
    Begin,
    /// `tool_call_update`.
    Update,
    /// A permission request. It needs the input to be answered, so the input is complete.
    Permission,
}

impl AcpParser {
    /// Applies an update of a tool call, and emits the call and its result as soon as they are known.
    pub(super) fn tool(&mut self, from: From, raw: Raw<'_>, said: &mut Vec<Said>) {
        let update: ToolUpdate<'_> = fields::read(raw);
        let id = fields::text(update.id).unwrap_or_default();
        // The calls of a cancelled turn may end while a text is open. The end of the turn decides how that text ends.
        let ends_call =
            self.cancelled && self.calls.get(&*id).is_some_and(|call| call.stage != Stage::Hidden);
        if !ends_call {
            self.end_before(said);
        }
        let goes_on = self.growing.as_deref() == Some(&*id) && !is_nothing(update.input);
        if !goes_on {
            self.say_grown(said);
        }
        let call = self.calls.entry(id.clone().into_owned()).or_default();
        // Agents repeat what they have sent.
        if call.stage == Stage::Returned {
            return;
        }
        let status = fields::text(update.status).unwrap_or_default();
        call.take(&update, from == From::Begin && status == "pending");
        let grows = from == From::Update && !is_nothing(update.input);
        let is_known = matches!(&*status, "in_progress" | "completed" | "failed") || from == From::Permission;
        self.growing = (grows && !is_known).then(|| id.clone().into_owned());
        if is_known {
            self.say_call(&id, said);
        }
        if matches!(&*status, "completed" | "failed") {
            self.say_result(&id, &status, said);
        }
    }

    /// Emits the call whose input grew with each update. Something else follows, so the input is complete.
    pub(super) fn say_grown(&mut self, said: &mut Vec<Said>) {
        if let Some(id) = self.growing.take() {
            self.say_call(&id, said);
        }
    }

    fn say_call(&mut self, id: &str, said: &mut Vec<Said>) {
        let Some(call) = self.calls.get_mut(id).filter(|call| call.stage == Stage::Hidden) else { return };
        call.stage = Stage::Said;
        let call =
            ToolCall { call: id.to_owned(), tool: call.tool(), input: call.input(), parent_call: None };
        self.conversation.call(call, said);
    }

    fn say_result(&mut self, id: &str, status: &str, said: &mut Vec<Said>) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let content = shown::result(call.content.as_ref(), call.output.as_ref(), &call.terminals);
        let has_failed = call.terminals.have_failed() || call.output.as_ref().is_some_and(shown::is_failure);
        let is_error = status == "failed" || has_failed;
        let patch = call.patch.take().filter(|_| !is_error);
        // The data of an emitted call is not kept.
        *call = Call { stage: Stage::Returned, ..Call::default() };
        let result = ToolResult { call: id.to_owned(), content, is_error, parent_call: None, patch };
        self.conversation.returned(result, said);
    }

    /// Emits the incomplete calls as far as they are known, because the turn ends.
    pub(super) fn say_hidden_calls(&mut self, said: &mut Vec<Said>) {
        let hidden = self.calls.iter().filter(|(_, call)| call.stage == Stage::Hidden);
        for id in hidden.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.say_call(&id, said);
        }
        self.calls.clear();
    }
}

impl Call {
    /// A field that is missing in an update stays unchanged.
    fn take(&mut self, update: &ToolUpdate<'_>, begins: bool) {
        if let Some(title) = fields::text(update.title) {
            // If a call starts without its input, its title can only be the name of the tool.
            if begins && self.name.is_none() && is_name(&title) {
                self.name = Some(title.clone().into_owned());
            }
            self.title = title.into_owned();
        }
        if let Some(name) = fields::text(update.name).filter(|name| !name.is_empty()) {
            self.name = Some(name.into_owned());
        }
        if let Some(kind) = fields::text(update.kind) {
            self.kind = kind.into_owned();
        }
        let keep = |field: &mut Option<JsonText>, raw: Raw<'_>| {
            if let Some(raw) = raw {
                *field = Some(JsonText::new_unchecked(raw.get()));
            }
        };
        keep(&mut self.input, update.input.filter(|_| !is_nothing(update.input)));
        keep(&mut self.locations, update.locations);
        keep(&mut self.content, update.content);
        keep(&mut self.output, update.output);
        self.terminals.take(update.meta);
        let patch = patches::of_claude(update.claude_response());
        if let Some(patch) = patch.or_else(|| patches::of_opencode_output(update.output)) {
            self.patch = Some(patch);
        }
    }

    /// The name of the tool. If the agent does not send a name, the tool's kind is used: the title describes only this
    /// one call.
    fn tool(&self) -> String {
        let kind = || Some(self.kind.clone()).filter(|kind| !matches!(kind.as_str(), "" | "other"));
        let title = || Some(self.title.clone()).filter(|title| !title.is_empty());
        self.name.clone().or_else(kind).or_else(title).unwrap_or_else(|| "tool".to_owned())
    }

    /// The unchanged input. If the agent does not send the input, its description of the call is used.
    fn input(&self) -> JsonText {
        if let Some(input) = &self.input {
            return input.clone();
        }
        let title = Some(&self.title).filter(|title| !title.is_empty());
        let fields = [
            ("title", title.map(|title| JsonText::string(title))),
            ("locations", self.locations.clone().filter(is_something)),
            ("content", self.content.clone().filter(is_something)),
        ];
        let fields = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let fields: Vec<String> =
            fields.map(|(name, value)| format!("\"{name}\":{}", value.as_str())).collect();
        JsonText::new_unchecked(format!("{{{}}}", fields.join(",")))
    }
}

fn is_something(list: &JsonText) -> bool {
    list.as_str().starts_with('[') && !is_empty(list.as_str())
}

/// Whether the value holds no input.
fn is_nothing(input: Raw<'_>) -> bool {
    input.is_none_or(|input| is_empty(input.get()))
}

/// Whether it is an empty object, list or string.
fn is_empty(json: &str) -> bool {
    let inside = json.strip_prefix(['{', '[', '"']).and_then(|rest| rest.strip_suffix(['}', ']', '"']));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

/// Whether it looks like a tool name (`bash`, `web_fetch`, `mcp__files__read`) and not like a sentence or a path.
fn is_name(title: &str) -> bool {
    !title.is_empty() && title.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
