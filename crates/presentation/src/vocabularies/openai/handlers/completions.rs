//! Chat completions: the same turns as responses, for clients that send the whole conversation each time.

use actix_web::http::header::HeaderMap;
use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_application::{CommandKey, ConversationTurn, Launch, Prompt, Refusal, Rereader, StoreError};
use tokenrail_domain::{Agent, TurnNumber, TurnState};

use super::conversation::{check_type, first_prompt};
use super::intake::{is_retry, receive};
use super::response_turn::{ResponseTurn, missing_completion, newest_message, place};
use super::responses::from;
use super::stream::{open, resume};
use super::whole;
use crate::api::Api;
use crate::blocks::EventBlock;
use crate::by_id::ById;
use crate::error::{Code, FieldProblem, Problem};
use crate::query::Query;
use crate::vocabularies::openai::chunks::Chunks;
use crate::vocabularies::openai::dto::{
    CompletionDeleted, CreateCompletion, CreateCompletionBody, Gap, create_completion,
};
use crate::vocabularies::openai::journal_text::push_escaped;
use crate::vocabularies::openai::pieces::Pieces;
use crate::vocabularies::openai::response_id::ResponseId;

/// The header with the client's own id of a conversation.
const CONVERSATION: &str = "x-conversation-id";
/// The maximum length of this id, in bytes.
const CONVERSATION_BYTES: usize = 200;
/// What the ids of conversations begin with, so that they are not those of chats of other APIs.
const CHAT: &str = "openai:";

/// Create a chat completion
///
/// Launches an agent or, with a known `X-Conversation-Id`, sends the newest messages to that conversation's agent.
#[utoipa::path(post, path = "/openai/v1/chat/completions", tag = "openai", request_body = CreateCompletionBody,
    params(("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,255}$"),
        ("X-Conversation-Id" = Option<String>, Header, pattern = "^[!-~]{1,200}$",
            description = "The client's own id of the conversation. Default: every request launches an agent.")),
    responses((status = 200,
        content((serde_json::Value = "application/json"), (EventBlock = "text/event-stream")))))]
pub(crate) async fn complete(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let chat = conversation_id(request.headers())?;
    let (create, key) = receive(&api, &request, payload, create_completion).await?;
    let (stream, include_usage) = (create.stream, create.include_usage);
    let place = place(&api, &request)?;
    let id = say(&api, request.headers(), chat, create, key).await?;
    let response = ResponseTurn::read(&api, id).await?.ok_or_else(Problem::not_found)?;
    if stream {
        let followed = response.follow(&api, place).await?;
        return Ok(open(&api, followed, Chunks::new(id, 0, include_usage)));
    }
    let followed = response.follow(&api, place).await?;
    Ok(whole::whole(&api, id, followed, whole::completion))
}

fn conversation_id(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(id) = headers.get(CONVERSATION) else { return Ok(None) };
    let id = id.to_str().ok().filter(|id| {
        (1..=CONVERSATION_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
    });
    let wrong = || Problem::parameter("X-Conversation-Id", "must be 1 to 200 visible ASCII characters");
    Ok(Some(format!("{CHAT}{}", id.ok_or_else(wrong)?)))
}

/// Sends the new message to the agent of the conversation, or launches an agent.
async fn say(
    api: &Api,
    headers: &HeaderMap,
    chat: Option<String>,
    create: CreateCompletion,
    key: Option<CommandKey>,
) -> Result<ResponseId, Problem> {
    let Some(chat) = chat else {
        let launch = launch(&create, first(api, &create)?, key);
        return Ok(response_id(&api.service().begin(launch).await.map_err(of_messages)?));
    };
    let mut known = api.service().by_chat(chat.clone()).await?;
    if known.is_none() {
        let launch = launch(&create, first(api, &create)?, key.clone());
        if let Some(begun) = api.service().begin_chat(chat.clone(), launch).await.map_err(of_messages)? {
            return Ok(response_id(&begun));
        }
        // Another request has begun the conversation at the same moment. Its agent has the instructions already.
        known = api.service().by_chat(chat.clone()).await?;
    }
    if let Some(agent) = &known {
        check_type(agent, create.model.as_ref())?;
        if key.is_none()
            && is_retry(headers)
            && let Some(id) = said_before(api, agent, &create).await?
        {
            return Ok(id);
        }
    }
    let launch = launch(&create, create.prompt.text.clone(), key);
    Ok(response_id(&api.service().converse_once(chat, launch).await.map_err(of_messages)?))
}

/// The launch of the agent of a conversation, with this message.
fn launch(create: &CreateCompletion, prompt: String, key: Option<CommandKey>) -> Launch {
    let CreateCompletion { model, prompt: Prompt { images, .. }, metadata, .. } = create;
    let (kind, model) =
        model.as_ref().map_or((None, None), |choice| (Some(choice.kind.clone()), choice.model.clone()));
    let (images, metadata) = (images.clone(), metadata.clone());
    Launch { kind, model, prompt, images, metadata, idempotency: key, ..Launch::default() }
}

fn response_id(said: &ConversationTurn) -> ResponseId {
    ResponseId { agent: said.agent, turn: said.turn }
}

/// The first prompt of the conversation.
fn first(api: &Api, create: &CreateCompletion) -> Result<String, Problem> {
    let CreateCompletion { instructions, earlier, prompt, .. } = create;
    let first = first_prompt(instructions.as_deref(), earlier.as_deref(), &prompt.text);
    let most = api.config().request_bytes;
    if first.len() <= most {
        return Ok(first);
    }
    let detail = format!(
        "a new conversation must be at most {most} bytes; to continue an existing one, send its X-Conversation-Id"
    );
    Err(Problem::new(Code::PayloadTooLarge, detail))
}

/// The newest turn, if this request is the one that began it, and the client has not received its answer. A user may
/// say the same twice.
async fn said_before(
    api: &Api,
    agent: &Agent,
    create: &CreateCompletion,
) -> Result<Option<ResponseId>, Problem> {
    let Some(turn) = newest_message(api, agent.id).await? else { return Ok(None) };
    let id = ResponseId { agent: agent.id, turn };
    let Some(newest) = ResponseTurn::read(api, id).await? else { return Ok(None) };
    let prompt = match id.turn {
        TurnNumber::FIRST => match first(api, create) {
            Ok(prompt) => prompt,
            // No agent was launched with a prompt that is too long.
            Err(_) => return Ok(None),
        },
        _ => create.prompt.text.clone(),
    };
    if newest.turn.prompt != prompt {
        return Ok(None);
    }
    let has_ended = matches!(newest.turn.state, TurnState::Ended(_));
    let is_received = match create.answer.as_deref() {
        Some(answer) if has_ended => has_said(api, &newest, answer).await?,
        _ => false,
    };
    Ok((!is_received).then_some(id))
}

/// Whether this is what the agent has said in a turn that has ended. A client that has read the stream may also have
/// text that was discarded later.
async fn has_said(api: &Api, response: &ResponseTurn, answer: &str) -> Result<bool, Problem> {
    let fold = response.now(api).await?;
    if fold.response().finish().is_err() {
        return Ok(false);
    }
    let mut answer_json = Vec::new();
    push_escaped(answer, &mut answer_json);
    for gap in [Gap::Said, Gap::Streamed] {
        let mut journal = api.service().reread(response.agent.id);
        if is_all_of(&answer_json, Pieces::of_gap(gap, fold.items()), &mut journal).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn is_all_of(json: &[u8], mut pieces: Pieces, journal: &mut Rereader) -> Result<bool, StoreError> {
    let mut rest = json;
    while let Some(piece) = pieces.next(journal).await? {
        let Some(following) = rest.strip_prefix(&piece[..]) else { return Ok(false) };
        rest = following;
    }
    Ok(rest.is_empty())
}

/// Names the parameter that has the images.
fn of_messages(refusal: Refusal) -> Problem {
    let mut problem = Problem::from(refusal);
    if problem.code == Code::ImagesNotAccepted {
        problem.errors = vec![FieldProblem::body("messages", problem.detail.clone())];
    }
    problem
}

/// Retrieve a chat completion, or resume its stream
///
/// Without `stream`, the completion is sent when the turn has ended.
#[utoipa::path(get, path = "/openai/v1/chat/completions/{id}", tag = "openai",
    params(("id" = String, Path), ("stream" = Option<bool>, Query),
        ("starting_after" = Option<u64>, Query, description = "The `id` of the last chunk that the client has."),
        ("include_usage" = Option<bool>, Query)),
    responses((status = 200,
        content((serde_json::Value = "application/json"), (EventBlock = "text/event-stream")))))]
pub(crate) async fn completion(ById { api, id, request }: ById) -> Result<HttpResponse, Problem> {
    let query = Query::of(&request)?;
    let from = from(&query)?;
    let include_usage = query.flag("include_usage")?;
    let stream = query.flag("stream")?;
    let response = ResponseTurn::find_completion(&api, &id).await?;
    let id = response.id();
    let place = place(&api, &request)?;
    if stream {
        let followed = response.follow(&api, place).await?;
        let out = Chunks::new(id, from, include_usage);
        return resume(&api, followed, out, missing_completion).await;
    }
    let followed = response.follow(&api, place).await?;
    Ok(whole::whole(&api, id, followed, whole::completion))
}

/// Delete a conversation of chat completions
///
/// Stops the agent and removes it from lists, with all of its completions. Only the newest completion of a conversation
/// can be deleted.
#[utoipa::path(delete, path = "/openai/v1/chat/completions/{id}", tag = "openai",
    params(("id" = String, Path)),
    responses((status = 200, body = CompletionDeleted)))]
pub(crate) async fn delete_completion(
    api: web::Data<Api>,
    id: web::Path<String>,
) -> Result<HttpResponse, Problem> {
    let response = ResponseTurn::find_completion(&api, &id).await?;
    response.delete_conversation(&api, "completion_id").await?;
    Ok(HttpResponse::Ok().json(CompletionDeleted::new(response.id().completion())))
}
