//! Recognizes a message that is sent again. Letta's clients repeat a message if they get no response in time. They send
//! no key with it: only the retry count shows that the message is not new.

use actix_web::http::header::HeaderMap;
use tokenrail_application::{Prompts, TurnRange};
use tokenrail_domain::{AgentId, Turn, TurnNumber, TurnState};

use super::journal;
use crate::api::Api;
use crate::error::Problem;

/// The header with the number of earlier tries of a request: 0 for the first try.
const RETRY_COUNT: &str = "x-stainless-retry-count";

/// Finds the turn that an earlier try started, if this is a retry. It is the newest turn with this prompt. It counts
/// only if it has not ended, or if it ended within `retry_window`, the time in which the client decides to retry.
pub(super) async fn begun_before(
    api: &Api,
    headers: &HeaderMap,
    agent: AgentId,
    prompt: &str,
) -> Result<Option<Turn>, Problem> {
    if !is_again(headers) {
        return Ok(None);
    }
    let newest = api.service().get(agent).await?;
    // The newest turn that has started, and the queued turns.
    let after = TurnNumber(newest.turn.0.saturating_sub(1));
    let range =
        TurnRange { after, newest_first: true, limit: api.config().list_agents, ..TurnRange::default() };
    let turns = api.service().list_turns(agent, range, Prompts::LeftOut).await?.items;
    let mut said = None;
    // A prompt can be long, so this reads one at a time.
    for listed in turns {
        said = api.service().turn(agent, listed.turn.number).await?.filter(|turn| turn.prompt == prompt);
        if said.is_some() {
            break;
        }
    }
    let Some(turn) = said else { return Ok(None) };
    if let TurnState::Ended(_) = turn.state {
        let end = journal::end(api, &turn).await?;
        let window_ms = i64::try_from(api.config().retry_window.as_millis()).unwrap_or(i64::MAX);
        let now = api.service().now();
        return Ok(end.is_some_and(|end| now.0.saturating_sub(end.at.0) <= window_ms).then_some(turn));
    }
    Ok(Some(turn))
}

fn is_again(headers: &HeaderMap) -> bool {
    let count = headers.get(RETRY_COUNT).and_then(|count| count.to_str().ok()?.parse::<u32>().ok());
    count.is_some_and(|count| 0 < count)
}
