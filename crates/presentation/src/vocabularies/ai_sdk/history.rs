//! The earlier messages of a chat, for a client that loads it again.

use std::collections::VecDeque;

use actix_web::HttpResponse;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use tokenrail_application::{AgentService, Refusal};
use tokenrail_domain::{AgentId, Sequence, Turn, TurnNumber, TurnState};
use utoipa::ToSchema;

use super::chat::{self, Answer, Found};
use super::fold::{AiSdkFold, SdkVersion};
use super::handlers::RUN_ID;
use super::message::Message;
use crate::by_id::ById;
use crate::error::Problem;
use crate::events;
use crate::fold::Fold as _;
use crate::json::JsonList;
use crate::query::Query;
use crate::vocabularies::ai_sdk::dto::UserMessageDto;

/// A message, as `useChat` keeps it.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "it describes messages in the OpenAPI document; they are written by other types"
)]
pub(crate) struct UiMessage {
    id: String,
    /// `user` or `assistant`.
    role: String,
    metadata: serde_json::Value,
    parts: Vec<serde_json::Value>,
}

/// Read the earlier messages of an AI SDK chat
///
/// Returns the messages (`UIMessage`) of the latest turns, oldest first, as `useChat` would have them after streaming.
/// If a turn is running, its user message is the last one. Its answer is not included: the header `x-workflow-run-id`
/// names it, and the stream of that id has all of it. Later queued turns are not included. For an unknown chat, the
/// list is empty.
#[utoipa::path(get, path = "/api/chat/{id}/messages", tag = "ai-sdk",
    params(("id" = String, Path, description = "The id of the chat or of an answer. For an answer, the list ends with that answer"),
        ("limit" = Option<u32>, Query, minimum = 1, description = "The number of turns. Default: 100"),
        ("before" = Option<u32>, Query, description = "Only turns before this one"),
        ("v" = Option<String>, Query, pattern = r"^[567](\.[0-9]{1,9}){0,2}(-[0-9a-z.]+)?$",
            description = "The AI SDK version: 5, 6 or 7, or a release such as 7.0.149. If omitted, the messages have only what all versions support")),
    responses((status = 200, body = [UiMessage],
        headers(("x-workflow-run-id" = String, description = "The id of the answer in progress")))))]
pub(crate) async fn chat_messages(ById { api, id, request }: ById) -> Result<HttpResponse, Problem> {
    let query = Query::of(&request)?;
    let version = SdkVersion::from_name(query.get("v"))?;
    let limit = query.page_items(api.config().list_agents)?;
    let before = query.turn("before")?;
    let (agent, after_run) = match chat::find(&api, &id).await? {
        None => return Ok(HttpResponse::Ok().json([(); 0])),
        Some(Found::Chat(agent)) => (*agent, u32::MAX),
        Some(Found::Run(run)) => (api.service().get(run.agent).await?, run.turn.0.saturating_add(1)),
    };
    let end = before.map_or(after_run, |before| before.0.min(after_run));
    let active = chat::active(&api, &agent).await?.filter(|turn| turn.number.0 < end);
    let newest = active.as_ref().map_or(agent.turn, |turn| turn.number);
    let last = newest.min(TurnNumber(end.saturating_sub(1)));
    let first = last.0.saturating_sub(u32::try_from(limit).unwrap_or(u32::MAX));
    let history = History {
        service: api.service().clone(),
        agent: agent.id,
        version,
        answer_bytes: api.config().chat_bytes,
        after: TurnNumber(first),
        last,
        active: active.as_ref().map(|turn| turn.number),
        turns: VecDeque::new(),
        out: JsonList::default(),
        state: State::Begin,
    };
    let mut response = HttpResponse::Ok();
    if let Some(turn) = active {
        response.insert_header((RUN_ID, Answer { turn, version }.run_id().to_string()));
    }
    Ok(response.content_type("application/json").streaming(history.bytes()))
}

/// The messages that are still to be written. They are generated as the client reads them: one turn at a time.
struct History {
    service: AgentService,
    agent: AgentId,
    version: SdkVersion,
    /// Maximum bytes of the parts of one answer. A longer conversation could not be sent back in a chat request.
    answer_bytes: usize,
    /// All turns up to this one were read.
    after: TurnNumber,
    last: TurnNumber,
    /// The turn that had not ended when the client asked. Its answer is left out, even if it ends meanwhile.
    active: Option<TurnNumber>,
    turns: VecDeque<Turn>,
    out: JsonList,
    state: State,
}

enum State {
    Begin,
    Messages,
    Over,
}

impl History {
    fn bytes(self) -> impl Stream<Item = Result<Bytes, Refusal>> {
        stream::try_unfold(self, |mut history| async move {
            let bytes = history.next().await?;
            Ok(bytes.map(|bytes| (bytes, history)))
        })
    }

    async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        match self.state {
            State::Begin => {
                self.state = State::Messages;
                Ok(Some(Bytes::from_static(b"[")))
            }
            State::Over => Ok(None),
            State::Messages => {
                let Some(turn) = self.turn().await? else {
                    self.state = State::Over;
                    return Ok(Some(Bytes::from_static(b"]")));
                };
                self.write(&turn).await?;
                Ok(Some(self.out.take().into()))
            }
        }
    }

    async fn turn(&mut self) -> Result<Option<Turn>, Refusal> {
        if self.turns.is_empty() && self.after < self.last {
            let left = self.last.0 - self.after.0;
            let left = usize::try_from(left).unwrap_or(usize::MAX);
            self.turns = self.service.turns(self.agent, self.after, left).await?.into();
        }
        let turn = self.turns.pop_front();
        // If there is none, the agent was deleted meanwhile.
        self.after = turn.as_ref().map_or(self.last, |turn| turn.number);
        Ok(turn)
    }

    async fn write(&mut self, turn: &Turn) -> Result<(), Refusal> {
        self.out.item(&UserMessageDto::new(self.agent, turn.number, &turn.prompt));
        if self.active == Some(turn.number) || !matches!(turn.state, TurnState::Ended(_)) {
            return Ok(());
        }
        let (Some(first), Some(last)) = (turn.first_sequence, turn.last_sequence) else { return Ok(()) };
        let mut fold = AiSdkFold::new(self.agent, turn.number, self.version);
        let mut message = Message::new(self.agent, turn.number, self.answer_bytes);
        let mut cursor = Sequence(first.0.saturating_sub(1));
        loop {
            let events = events::page(&self.service, self.agent, cursor, last).await?;
            let Some(newest) = events.last() else { break };
            cursor = newest.sequence;
            for event in &events {
                fold.event(event, &mut message);
            }
        }
        if let Some(answer) = message.dto() {
            self.out.item(&answer);
        }
        Ok(())
    }
}
