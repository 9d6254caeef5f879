//! AI SDK chats over HTTP: send a message, follow the response, stop it.

use actix_web::{HttpRequest, HttpResponse, web};
use bytes::Bytes;
use tokenrail_domain::AgentId;

use super::chat::{self, Answer, Found};
use super::dto::{ChatBody, chat_request};
use super::fold::SdkVersion;
use super::intake::receive;
use super::stream::ChatStream;
use super::writer::ChunkWriter;
use crate::api::{Api, StreamPlace};
use crate::blocks::EventBlock;
use crate::by_id::ById;
use crate::error::Problem;
use crate::json::AgentRefDto;
use crate::peer::peer;
use crate::query::Query;
use crate::vocabularies::turns::block_stream::{BlockSource, event_stream, streamed};

/// Sent at once, so that the client knows that the stream is open.
const HELLO: Bytes = Bytes::from_static(b": stream-open\n\n");
/// A comment that keeps the connection alive.
const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");
/// Follows the last chunk.
const DONE: Bytes = Bytes::from_static(b"data: [DONE]\n\n");

/// The header with the id of a response.
pub(super) const RUN_ID: &str = "x-workflow-run-id";
const TAIL_INDEX: &str = "x-workflow-stream-tail-index";
const PROTOCOL: (&str, &str) = ("x-vercel-ai-ui-message-stream", "v1");

/// Send a message to an AI SDK chat
///
/// The latest user message becomes a turn. The response is its UI message stream. An unknown chat launches an agent
/// of the default type. A repeated message returns the same response.
#[utoipa::path(post, path = "/api/chat", tag = "ai-sdk", request_body = ChatBody,
    params(("v" = Option<String>, Query, description = "The AI SDK version: 5, 6 or 7, or a release such as 7.0.149. If omitted, the stream has only what all versions support")),
    responses((status = 200, body = EventBlock, content_type = "text/event-stream",
        headers(("x-workflow-run-id" = String, description = "The id of the answer")))))]
pub(crate) async fn chat_say(
    api: web::Data<Api>,
    request: HttpRequest,
    payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let version = SdkVersion::from_name(Query::of(&request)?.get("v"))?;
    let message_bytes = api.config().request_bytes;
    let wish = receive(&api, &request, payload, move |body| chat_request(body, message_bytes)).await??;
    let place = api.open_stream(peer(request.peer_addr()))?;
    let answer = chat::say(&api, wish, version).await?;
    respond(&api, &answer, Start { from: 0, tail: None }, place).await
}

/// Resume the response of an AI SDK chat
///
/// With the id of a chat: streams the running turn from its first chunk, or returns 204 if no turn is running. With
/// the id of a response: streams that response, even if it has ended. With `startIndex`: streams from that chunk;
/// if no turn is running, streams the latest turn from there.
#[utoipa::path(get, path = "/api/chat/{id}/stream", tag = "ai-sdk",
    params(("id" = String, Path, description = "The id of the chat or of the answer"),
        ("startIndex" = Option<i64>, Query, description = "A negative number counts chunks from the end"),
        ("v" = Option<String>, Query)),
    responses((status = 200, body = EventBlock, content_type = "text/event-stream",
        headers(("x-workflow-run-id" = String), ("x-workflow-stream-tail-index" = i64))),
        (status = 204, description = "No answer is in progress in this chat")))]
pub(crate) async fn chat_stream(ById { api, id, request }: ById) -> Result<HttpResponse, Problem> {
    let query = Query::of(&request)?;
    let start = start_index(&query)?;
    let Some(mut answer) = find(&api, &id, start.is_some()).await? else {
        return Ok(HttpResponse::NoContent().finish());
    };
    if let Some(version) = query.get("v") {
        answer.version = SdkVersion::from_name(Some(version))?;
    }
    let place = api.open_stream(peer(request.peer_addr()))?;
    let start = match start {
        None => Start { from: 0, tail: None },
        Some(from) => {
            let count = ChatStream::count(&api, &answer).await?;
            let from = match u64::try_from(from) {
                Ok(from) => from,
                Err(_) => count.saturating_sub(from.unsigned_abs()),
            };
            Start { from, tail: Some(count) }
        }
    };
    respond(&api, &answer, start, place).await
}

/// Cancel a chat's running and queued turns
///
/// The streams of the chat show how the turns end. A repeated request, or a request for an idle chat, has the same
/// response.
#[utoipa::path(post, path = "/api/chat/{id}/stop", tag = "ai-sdk", params(("id" = String, Path)),
    responses((status = 202, body = AgentRefDto)))]
pub(crate) async fn chat_stop(api: web::Data<Api>, id: web::Path<String>) -> Result<HttpResponse, Problem> {
    let agent: AgentId = match chat::find(&api, &id).await? {
        Some(Found::Chat(agent)) => {
            api.service().cancel(agent.id).await?;
            agent.id
        }
        Some(Found::Run(run)) => {
            api.service().cancel_turn(run.agent, run.turn).await?;
            run.agent
        }
        None => return Err(chat::unknown()),
    };
    Ok(HttpResponse::Accepted().json(AgentRefDto { agent_id: agent.into() }))
}

/// Finds the response that an id refers to: see [`chat::answer`].
async fn find(api: &Api, id: &str, with_index: bool) -> Result<Option<Answer>, Problem> {
    match chat::find(api, id).await? {
        Some(found) => chat::answer(api, found, with_index).await,
        None if with_index => Err(chat::unknown()),
        None => Ok(None),
    }
}

fn start_index(query: &Query) -> Result<Option<i64>, Problem> {
    let Some(text) = query.get("startIndex") else { return Ok(None) };
    match text.parse() {
        Ok(index) => Ok(Some(index)),
        Err(_) => Err(Problem::parameter("startIndex", "must be a whole number")),
    }
}

/// The chunk with which a response starts.
struct Start {
    from: u64,
    /// The number of chunks. `None` if the client does not need it.
    tail: Option<u64>,
}

async fn respond(
    api: &Api,
    answer: &Answer,
    start: Start,
    place: StreamPlace,
) -> Result<HttpResponse, Problem> {
    let stream = ChatStream::open(api, answer, ChunkWriter::lines(start.from)).await?;
    let mut response = event_stream();
    response.insert_header(PROTOCOL).insert_header((RUN_ID, answer.run_id().to_string()));
    if let Some(count) = start.tail {
        let index = i64::try_from(count).unwrap_or(i64::MAX) - 1;
        response.insert_header((TAIL_INDEX, index.to_string()));
    }
    let source = Chunks { stream, is_over: false };
    Ok(response.streaming(streamed(source, HELLO, api.config().heartbeat, place)))
}

/// The chunks of a response, and the block after the last one.
struct Chunks {
    stream: ChatStream,
    is_over: bool,
}

impl BlockSource for Chunks {
    async fn more(&mut self) -> Result<Option<Bytes>, &'static str> {
        if self.is_over {
            return Ok(None);
        }
        let chunks = self.stream.next().await?;
        self.is_over = chunks.is_none();
        Ok(Some(chunks.unwrap_or(DONE)))
    }

    fn beat(&self) -> Bytes {
        KEEP_ALIVE
    }
}
