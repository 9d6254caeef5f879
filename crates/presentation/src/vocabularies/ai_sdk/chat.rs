//! Conversations with the AI SDK: which agent and turn a request is about.

use tokenrail_application::{CommandKey, Launch, Refusal, TurnRange};
use tokenrail_domain::{Agent, AgentId, Turn, TurnNumber, TurnState};

use super::run_id::RunId;
use crate::api::Api;
use crate::error::Problem;
use crate::vocabularies::ai_sdk::dto::{ChatRequest, Saying};
use crate::vocabularies::ai_sdk::fold::SdkVersion;

/// How many turns are looked at at once for one that has not ended.
const TURNS: usize = 32;

/// A turn whose answer is to be told.
pub(crate) struct Answer {
    pub(crate) turn: Turn,
    pub(crate) version: SdkVersion,
}

impl Answer {
    pub(crate) fn run_id(&self) -> RunId {
        RunId { agent: self.turn.agent, turn: self.turn.number, version: self.version }
    }
}

/// What an id in a path stands for.
pub(crate) enum Found {
    /// A conversation.
    Chat(Box<Agent>),
    /// A turn, by the id that its first answer had in a header.
    Run(RunId),
}

/// Says something in a conversation, or finds what came of it when it was said before.
pub(crate) async fn say(api: &Api, request: ChatRequest, version: SdkVersion) -> Result<Answer, Problem> {
    let ChatRequest { chat, agent, saying } = request;
    let (agent, turn) = match (chat, agent) {
        (Some(chat), _) => converse(api, chat, saying).await?,
        (None, Some(agent)) => {
            let known = api.service().say(agent, saying.prompt.clone(), key(&saying)).await;
            match known {
                Ok(said) => (said.agent, said.turn),
                // It was said elsewhere.
                Err(Refusal::NotFound(_)) => begin(api, saying).await?,
                Err(refusal) => return Err(refusal.into()),
            }
        }
        (None, None) => begin(api, saying).await?,
    };
    let turn = api.service().turn(agent, turn).await?.ok_or_else(Problem::not_found)?;
    Ok(Answer { turn, version })
}

async fn converse(api: &Api, chat: String, saying: Saying) -> Result<(AgentId, TurnNumber), Problem> {
    let idempotency = key(&saying);
    let launch = Launch { prompt: saying.prompt, idempotency, ..Launch::default() };
    let said = api.service().converse(chat, launch).await?;
    Ok((said.agent, said.turn))
}

/// Begins a conversation whose client has no id for it: the answer names the agent with which it goes on.
async fn begin(api: &Api, saying: Saying) -> Result<(AgentId, TurnNumber), Problem> {
    let idempotency = key(&saying);
    let launch = Launch { prompt: saying.prompt, idempotency, ..Launch::default() };
    let said = api.service().begin(launch).await?;
    Ok((said.agent, said.turn))
}

/// What makes a message be answered once, while it is the newest. A client that edits a message keeps its id, so the
/// text is a part of it. Asking for an answer again is a new turn each time, unless the client says which answer it
/// means.
fn key(saying: &Saying) -> Option<CommandKey> {
    let id = saying.id.as_ref()?;
    let key = match &saying.regenerate {
        None => format!("ai-sdk:{id}:{:016x}", fingerprint(&saying.prompt)),
        Some(Some(of)) => format!("ai-sdk:{id}:again:{of}"),
        Some(None) => return None,
    };
    Some(CommandKey { key, body: saying.prompt.clone() })
}

/// FNV-1a: the same number in every release, since it is stored with the key. Where two texts have the same, the
/// later one is refused, and never taken for the other.
fn fingerprint(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// What an id stands for: a client's own conversation before a run, whose id we have made.
pub(crate) async fn find(api: &Api, id: &str) -> Result<Option<Found>, Problem> {
    if let Some(agent) = api.service().by_chat(id.to_owned()).await? {
        return Ok(Some(Found::Chat(Box::new(agent))));
    }
    Ok(id.parse().ok().map(Found::Run))
}

/// The turn that runs or, if none does, the first one that waits.
pub(crate) async fn active(api: &Api, agent: &Agent) -> Result<Option<Turn>, Problem> {
    let before = TurnNumber(agent.turn.0.saturating_sub(1));
    let range = TurnRange { after: before, limit: TURNS, ..TurnRange::default() };
    let turns = api.service().list_turns(agent.id, range, false).await?.items;
    let open = turns.iter().find(|listed| !matches!(listed.turn.state, TurnState::Ended(_)));
    match open {
        Some(open) => Ok(api.service().turn(agent.id, open.turn.number).await?),
        None => Ok(None),
    }
}

/// The turn that runs or waits or, if none does, the newest.
pub(crate) async fn newest(api: &Api, agent: &Agent) -> Result<Option<Turn>, Problem> {
    match active(api, agent).await? {
        Some(turn) => Ok(Some(turn)),
        None => Ok(api.service().turn(agent.id, agent.turn).await?),
    }
}
