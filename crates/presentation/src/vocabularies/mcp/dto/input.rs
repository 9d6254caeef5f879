//! What the server asks of a person through the client, and what the person answers: a form with the options of a
//! permission request. The client repeats its call with the answer.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use tokenrail_application::PermissionAnswer;
use tokenrail_domain::{Agent, AgentId, PermissionReply};

use super::arguments::ANSWER_OPTIONS;
use super::content::CallToolResult;
use super::entry::AskedDto;
use super::rpc::Params;
use crate::error::Problem;
use crate::json::fields::Fields;

/// How many requests one result asks about at most. The next result asks about further ones.
const FORMS: usize = 8;
/// The maximum length of a state that a client sends back, in bytes.
const STATE_BYTES: usize = 16 * 1024;

pub(super) const STATE: &str = "requestState";
pub(super) const RESPONSES: &str = "inputResponses";

/// The end of a wait.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Waited {
    Over(CallToolResult),
    Asks(InputRequired),
}

/// A result that asks a person.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InputRequired {
    input_requests: BTreeMap<String, Elicitation>,
    request_state: String,
}

#[derive(Debug, Serialize)]
struct Elicitation {
    method: &'static str,
    params: Form,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Form {
    mode: &'static str,
    message: String,
    requested_schema: FormSchema,
}

#[derive(Debug, Serialize)]
struct FormSchema {
    #[serde(rename = "type")]
    kind: &'static str,
    properties: BTreeMap<&'static str, Field>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    required: Vec<&'static str>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Field {
    String {
        title: &'static str,
        #[serde(rename = "oneOf", skip_serializing_if = "Vec::is_empty")]
        one_of: Vec<Choice>,
    },
    Array {
        title: &'static str,
        items: Choices,
    },
}

#[derive(Debug, Serialize)]
struct Choices {
    #[serde(rename = "anyOf")]
    any_of: Vec<Choice>,
}

#[derive(Debug, Serialize)]
struct Choice {
    #[serde(rename = "const")]
    id: String,
    title: String,
}

/// What the client sends back with the answers. The server keeps nothing itself.
///
/// It is not signed. A client can answer any request with `answer_permission`, so it gains nothing by changing this.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    agent: String,
    asked: Vec<AskedState>,
    /// The requests that the person has answered before, but that are still open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    answered: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct AskedState {
    id: String,
    /// The option that rejects, for a person who declines to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reject: Option<String>,
    /// The options with which the agent accepts a note.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    with_note: Vec<String>,
}

impl InputRequired {
    /// Asks about requests of an agent, and says why it does not accept the answers that were `refused`. `None` if a
    /// form cannot show any of them. `answered` are those of which the agent may not have heard yet.
    pub(crate) fn new(
        agent: &Agent,
        asked: Vec<AskedDto>,
        answered: Vec<String>,
        refused: &BTreeMap<String, String>,
    ) -> Option<Self> {
        let asked: Vec<_> = asked.into_iter().filter(AskedDto::fits_a_form).take(FORMS).collect();
        let state = State {
            agent: agent.id.to_string(),
            asked: asked
                .iter()
                .map(|asked| AskedState {
                    id: asked.request_id.clone(),
                    reject: asked.rejecting(),
                    with_note: asked.with_note(),
                })
                .collect(),
            answered,
        };
        let name = agent.name.as_deref().unwrap_or(&agent.kind);
        let input_requests: BTreeMap<_, _> = asked
            .into_iter()
            .map(|asked| {
                let refused = refused.get(&asked.request_id);
                (asked.request_id.clone(), Elicitation::new(name, asked, refused))
            })
            .collect();
        // Not expected to fail: it consists of texts.
        let request_state = URL_SAFE_NO_PAD.encode(serde_json::to_vec(&state).ok()?);
        let fits = !input_requests.is_empty() && request_state.len() <= STATE_BYTES;
        fits.then_some(Self { input_requests, request_state })
    }
}

impl Elicitation {
    fn new(agent: &str, asked: AskedDto, refused: Option<&String>) -> Self {
        let refused = refused.map(|why| format!("Your answer was not accepted: {why}\n\n"));
        let refused = refused.unwrap_or_default();
        let message = format!("{refused}{agent} asks: {}\n\n{}", asked.tool, asked.input.shown());
        let (several, text, note) = (asked.accepts("several"), asked.accepts("text"), asked.accepts("note"));
        let choices: Vec<_> = asked
            .options
            .into_iter()
            .map(|option| Choice { id: option.option_id, title: option.name })
            .collect();
        let mut properties = BTreeMap::new();
        let mut required = Vec::new();
        if !choices.is_empty() {
            let (name, field) = if several {
                ("option_ids", Field::Array { title: "Answers", items: Choices { any_of: choices } })
            } else {
                ("option_id", Field::String { title: "Answer", one_of: choices })
            };
            properties.insert(name, field);
            if !text {
                required.push(name);
            }
        }
        let words = |title| Field::String { title, one_of: Vec::new() };
        if text {
            properties.insert("text", words("Answer in your own words"));
        }
        if note {
            properties.insert("note", words("Reason for rejecting (optional)"));
        }
        let requested_schema = FormSchema { kind: "object", properties, required };
        Self { method: "elicitation/create", params: Form { mode: "form", message, requested_schema } }
    }
}

/// What a person has answered.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    pub(crate) given: Vec<PermissionAnswer>,
    /// The requests that the person has answered before.
    pub(crate) earlier: Vec<String>,
    /// Whether the person has closed a form without an answer.
    pub(crate) is_dismissed: bool,
}

/// Reads the answers that a call about this agent brings, if it brings any.
pub(crate) fn answers(params: &Params, agent: AgentId) -> Result<Answers, Problem> {
    let mut fields = params.pick(&[STATE, RESPONSES])?;
    let state = fields.text(STATE, |_| None);
    let responses = fields.object(RESPONSES);
    fields.finish()?;
    let Some(state) = state else {
        let is_lost = responses.is_some_and(|responses| responses.as_str() != "{}");
        return if is_lost {
            Err(Problem::field(STATE, "must be sent with the answers"))
        } else {
            Ok(Answers::default())
        };
    };
    let State { asked, answered: earlier, .. } = state_of(&state, agent).ok_or_else(|| {
        Problem::field(
            STATE,
            "must be the requestState of the result that asked for input, and the call must name the same agent",
        )
    })?;
    let mut answers = Answers { earlier, ..Answers::default() };
    let Some(responses) = responses else { return Ok(answers) };
    let mut responses = params.inner(&responses)?;
    for AskedState { id: request_id, reject, with_note } in asked {
        // What is not answered is asked again.
        let Some(response) = responses.object(&request_id) else { continue };
        let mut response = params.inner(&response)?;
        let reply = match &*response.required_text("action", |_| None) {
            "accept" => chosen(params, &mut response, &with_note)?,
            "decline" => Some(PermissionReply::of(reject)),
            "cancel" => {
                answers.is_dismissed = true;
                None
            }
            _ => {
                response.refuse("action", "must be accept, decline or cancel");
                None
            }
        };
        responses.refuse_all(&request_id, response);
        answers.given.extend(reply.map(|reply| PermissionAnswer { request_id, reply }));
    }
    responses.finish()?;
    Ok(answers)
}

fn state_of(state: &str, agent: AgentId) -> Option<State> {
    if STATE_BYTES < state.len() {
        return None;
    }
    let state: State = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(state).ok()?).ok()?;
    (state.agent.parse().ok() == Some(agent) && state.asked.len() <= FORMS).then_some(state)
}

/// What a filled-in form says. `None` if nothing is filled in. A form may have empty fields. It cannot say that a note
/// needs an option that rejects, so a note with another answer is left out.
fn chosen(
    params: &Params,
    response: &mut Fields,
    with_note: &[String],
) -> Result<Option<PermissionReply>, Problem> {
    let Some(content) = response.optional_object("content") else { return Ok(None) };
    let mut content = params.inner(&content)?;
    content.forget_nulls();
    let is_filled = |text: &String| !text.trim().is_empty();
    let option = content.text("option_id", |_| None).filter(is_filled);
    let options = content.texts("option_ids", |options| {
        (ANSWER_OPTIONS < options.len()).then_some("must contain at most 64 options")
    });
    let options = options.filter(|options| !options.is_empty());
    let text = content.text("text", |_| None).filter(is_filled);
    let note = content.text("note", |_| None).filter(is_filled);
    response.refuse_all("content", content);
    let is_answer = option.is_some() || options.is_some() || text.is_some();
    let mut reply = PermissionReply::from_parts(option, options, text, note);
    let rejects = matches!(&*reply.options, [option] if with_note.contains(option)) && reply.text.is_none();
    reply.note = reply.note.filter(|_| rejects);
    Ok(is_answer.then_some(reply))
}
