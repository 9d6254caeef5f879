//! Runs: says something to an agent, or answers it, and streams what follows.

use actix_web::{HttpRequest, HttpResponse, web};
use tokenrail_application::{CommandKey, ConversationTurn, Launch, Prompt, Refusal};
use tokenrail_domain::Agent;

use super::answers::{Answered, answered, were_given};
use super::streams::RunStream;
use super::thread::{after, agent_of, no_thread};
use crate::api::Api;
use crate::blocks::EventBlock;
use crate::error::{Code, Problem};
use crate::peer::peer;
use crate::query;
use crate::vocabularies::ag_ui::cursor::ThreadCursor;
use crate::vocabularies::ag_ui::dto::{
    CAPABILITIES, CapabilitiesDto, RunInputBody, RunRequest, Wish, run_request,
};
use crate::vocabularies::ag_ui::fold::{AgUiFold, Scope, WantedRun};
use crate::vocabularies::prompts::conversation_limits::ConversationLimits;
use crate::vocabularies::prompts::large_body::{self, LargeBody, closing, keep_room, parsed};
use crate::vocabularies::turns::block_stream::{BEAT, event_stream, streamed};
use crate::vocabularies::turns::turn_events::TurnEvents;

/// Start or repeat an AG-UI run
///
/// The newest message becomes a turn of the thread's agent. An unknown thread launches an agent of the default type.
/// The response is the stream of the run. The run continues if the client disconnects, and a repeated request streams
/// it again.
#[utoipa::path(post, path = "/ag-ui", tag = "ag-ui",
    operation_id = "ag_ui_run", request_body = RunInputBody,
    params(("after" = Option<String>, Query, description = "The cursor of the last event that the client has")),
    responses((status = 200, body = EventBlock, content_type = "text/event-stream")))]
pub(crate) async fn run(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    respond(&api, &request, payload, None).await
}

/// Start or repeat an AG-UI run of an agent type
///
/// An unknown thread launches an agent of this type.
#[utoipa::path(post, path = "/ag-ui/{type}", tag = "ag-ui",
    operation_id = "ag_ui_run_of_type", request_body = RunInputBody,
    params(("type" = String, Path),
        ("after" = Option<String>, Query, description = "The cursor of the last event that the client has")),
    responses((status = 200, body = EventBlock, content_type = "text/event-stream")))]
pub(crate) async fn run_of_type(
    api: web::Data<Api>,
    kind: web::Path<String>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    respond(&api, &request, payload, Some(kind.into_inner())).await
}

/// Get the AG-UI capabilities of all agents
#[utoipa::path(get, path = "/ag-ui", tag = "ag-ui",
    operation_id = "ag_ui_capabilities", responses((status = 200, body = CapabilitiesDto)))]
pub(crate) async fn capabilities() -> HttpResponse {
    HttpResponse::Ok().json(CAPABILITIES)
}

async fn respond(
    api: &Api,
    request: &HttpRequest,
    payload: web::Payload,
    kind: Option<String>,
) -> Result<HttpResponse, Problem> {
    let after = after(request)?;
    let RunRequest { thread, run, is_before_v1, wish } = receive(api, request, payload).await?;
    let place = api.open_stream(peer(request.peer_addr()))?;
    let known = agent_of(api, &thread).await?;
    check_type(known.as_ref(), kind.as_deref())?;
    if after != ThreadCursor::START {
        let agent = known.as_ref().ok_or_else(no_thread)?;
        check_resumed(api, &thread, agent, after, (&run, &wish)).await?;
    }
    let (agent, turn, after_request, answered) = match wish {
        Wish::Say(prompt) => {
            let said = say(api, &thread, known.as_ref(), kind, &run, prompt).await?;
            (said.agent, said.turn, None, Vec::new())
        }
        Wish::Resume(answers) => {
            let agent = known.ok_or_else(no_thread)?.id;
            let Answered { turn, after, later } = answered(api, agent, answers).await?;
            (agent, turn, Some(after), later)
        }
    };
    let turn = api.service().turn(agent, turn).await?.ok_or_else(no_thread)?;
    // A cursor of another run: there is nothing after it in this one.
    if let Some(head) = turn.last_sequence.filter(|last| *last < after.sequence) {
        return Err(api.service().cursor_ahead(head).into());
    }
    let events = TurnEvents::follow(api, agent, &turn).await?;
    let scope = Scope::Run(WantedRun { id: run, after: after_request, answered, is_before_v1 });
    let fold = AgUiFold::new(agent, turn.number, thread, scope);
    let source = RunStream::new(events, fold, after);
    Ok(event_stream().streaming(streamed(source, BEAT, api.config().heartbeat, place)))
}

/// Receives a request. The images keep the room of the body until they are saved.
async fn receive(api: &Api, request: &HttpRequest, payload: web::Payload) -> Result<RunRequest, Problem> {
    query::json_only(request)?;
    let limits = ConversationLimits::from(api.config());
    let LargeBody { bytes, room } = large_body::receive(api, request, payload, limits.body_bytes).await?;
    let read = move |bytes: &[u8]| {
        let mut read = run_request(bytes, limits)?;
        if let Wish::Say(prompt) = &mut read.wish {
            keep_room(&mut prompt.images, room);
        }
        Ok(read)
    };
    parsed(api, bytes, read).await.ok_or_else(closing)?
}

fn check_type(agent: Option<&Agent>, kind: Option<&str>) -> Result<(), Problem> {
    match (agent, kind) {
        (Some(agent), Some(kind)) if agent.kind != kind => Err(other_type(&agent.kind)),
        _ => Ok(()),
    }
}

fn other_type(kind: &str) -> Problem {
    Problem::field(
        "threadId",
        format!("this thread has an agent of the type {kind}; use this type, or another thread"),
    )
}

/// A client that has a part of a run resumes it. If the run is not known, it would begin again, and the client would
/// not get its beginning.
async fn check_resumed(
    api: &Api,
    thread: &str,
    agent: &Agent,
    after: ThreadCursor,
    (run, wish): (&str, &Wish),
) -> Result<(), Problem> {
    if agent.head < after.sequence {
        return Err(api.service().cursor_ahead(agent.head).into());
    }
    let is_known = match wish {
        Wish::Say(prompt) => api.service().conversed(thread, agent.id, &key(run, prompt)).await?.is_some(),
        Wish::Resume(answers) => were_given(api, agent.id, answers).await?,
    };
    if !is_known {
        let detail =
            "no such run, or it is too old; to resume a thread, use GET /ag-ui/threads/{threadId}?after=…";
        return Err(Problem::new(Code::NotFound, detail));
    }
    Ok(())
}

fn key(run: &str, prompt: &Prompt) -> CommandKey {
    let body = query::fingerprint(prompt.text.as_bytes(), &prompt.images);
    CommandKey { key: format!("ag-ui:{run}"), body }
}

/// Sends a message. A run is done once: if the client sent this one before, finds the turn that it became.
async fn say(
    api: &Api,
    thread: &str,
    known: Option<&Agent>,
    kind: Option<String>,
    run: &str,
    prompt: Prompt,
) -> Result<ConversationTurn, Problem> {
    let key = Some(key(run, &prompt));
    if let Some(agent) = known.filter(|agent| agent.chat.as_deref() != Some(thread)) {
        let accepted = api.service().send(agent.id, prompt, key).await?;
        return Ok(ConversationTurn { agent: agent.id, turn: accepted.turn });
    }
    let Prompt { text, images } = prompt;
    let launch = Launch { kind, prompt: text, images, idempotency: key, ..Launch::default() };
    match api.service().converse_once(thread.to_owned(), launch).await {
        // Another client has launched the agent since.
        Err(Refusal::OtherType { kind }) => Err(other_type(&kind)),
        said => Ok(said?),
    }
}
