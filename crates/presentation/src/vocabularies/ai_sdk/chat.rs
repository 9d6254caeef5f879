//! AI SDK chats: finds the agent and the turn that a request refers to.

use tokenrail_application::{CommandKey, Launch, Prompts, Refusal, TurnRange};
use tokenrail_domain::{Agent, AgentId, Turn, TurnNumber, TurnState};

use super::run_id::RunId;
use crate::api::Api;
use crate::error::{Code, Problem};
use crate::vocabularies::ai_sdk::dto::{ChatRequest, Saying};
use crate::vocabularies::ai_sdk::fold::SdkVersion;

/// The number of turns that [`active`] reads to find one that has not ended.
const TURNS: usize = 32;

/// A turn whose response is sent to the client.
pub(crate) struct Answer {
    pub(crate) turn: Turn,
    pub(crate) version: SdkVersion,
}

impl Answer {
    pub(crate) fn run_id(&self) -> RunId {
        RunId { agent: self.turn.agent, turn: self.turn.number, version: self.version }
    }
}

/// What an id in a path refers to.
pub(crate) enum Found {
    /// A chat, by the client's own id.
    Chat(Box<Agent>),
    /// A turn, by the id in the header of its first response.
    Run(RunId),
}

/// Sends a message to a chat. If the client sent the message before, finds the turn that it became.
pub(crate) async fn say(api: &Api, request: ChatRequest, version: SdkVersion) -> Result<Answer, Problem> {
    let ChatRequest { chat, agent, saying } = request;
    let (agent, turn) = match (chat, agent) {
        (Some(chat), _) => converse(api, chat, saying).await?,
        (None, Some(agent)) => {
            let known = api.service().say(agent, saying.prompt.clone(), key(&saying)).await;
            match known {
                Ok(said) => (said.agent, said.turn),
                // This server does not know the agent that the conversation names.
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

/// Starts a conversation for which the client sent no id. The response names the agent, so that the next request can
/// continue the conversation.
async fn begin(api: &Api, saying: Saying) -> Result<(AgentId, TurnNumber), Problem> {
    let idempotency = key(&saying);
    let launch = Launch { prompt: saying.prompt, idempotency, ..Launch::default() };
    let said = api.service().begin(launch).await?;
    Ok((said.agent, said.turn))
}

/// Returns the key under which a message is answered only once while it is the newest message. A client that
/// edits a message keeps the message's id, so the key contains a fingerprint of the text. A request to regenerate a
/// response has no key and starts a new turn each time, unless the client names the response to regenerate. A message
/// without an id has no key either.
fn key(saying: &Saying) -> Option<CommandKey> {
    let id = saying.id.as_ref()?;
    let key = match &saying.regenerate {
        None => format!("ai-sdk:{id}:{:016x}", fingerprint(&saying.prompt)),
        Some(Some(of)) => format!("ai-sdk:{id}:again:{of}"),
        Some(None) => return None,
    };
    Some(CommandKey { key, body: saying.prompt.clone() })
}

/// FNV-1a. It must return the same number in every release, because the number is stored with the key. If two texts
/// have the same number, the later message is refused. It is never mistaken for the earlier one.
fn fingerprint(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Finds what an id refers to. The client's own chat ids take precedence over run ids, which the server creates.
pub(crate) async fn find(api: &Api, id: &str) -> Result<Option<Found>, Problem> {
    if let Some(agent) = api.service().by_chat(id.to_owned()).await? {
        return Ok(Some(Found::Chat(Box::new(agent))));
    }
    Ok(id.parse().ok().map(Found::Run))
}

/// Returns the response that an id refers to. `None` if the chat has no response in progress. A client that has a part
/// of the response gets the rest, even if the turn has ended in the meantime.
pub(crate) async fn answer(api: &Api, found: Found, has_part: bool) -> Result<Option<Answer>, Problem> {
    let (turn, version) = match found {
        Found::Chat(agent) if has_part => (newest(api, &agent).await?, SdkVersion::Any),
        Found::Chat(agent) => (active(api, &agent).await?, SdkVersion::Any),
        Found::Run(RunId { agent, turn, version }) => {
            let turn = api.service().turn(agent, turn).await?.ok_or_else(unknown)?;
            (Some(turn), version)
        }
    };
    Ok(turn.map(|turn| Answer { turn, version }))
}

pub(crate) fn unknown() -> Problem {
    Problem::new(Code::NotFound, "no such chat")
}

/// Returns the running turn or, if no turn is running, the first queued turn.
pub(crate) async fn active(api: &Api, agent: &Agent) -> Result<Option<Turn>, Problem> {
    let before = TurnNumber(agent.turn.0.saturating_sub(1));
    let range = TurnRange { after: before, limit: TURNS, ..TurnRange::default() };
    let turns = api.service().list_turns(agent.id, range, Prompts::LeftOut).await?.items;
    let open = turns.iter().find(|listed| !matches!(listed.turn.state, TurnState::Ended(_)));
    match open {
        Some(open) => Ok(api.service().turn(agent.id, open.turn.number).await?),
        None => Ok(None),
    }
}

/// Returns the running or queued turn or, if there is none, the newest turn.
async fn newest(api: &Api, agent: &Agent) -> Result<Option<Turn>, Problem> {
    match active(api, agent).await? {
        Some(turn) => Ok(Some(turn)),
        None => Ok(api.service().turn(agent.id, agent.turn).await?),
    }
}
