//! Begins to follow an agent, in the dialect that the client has chosen.

use tokenrail_application::{AfterLastTurn, Follower};
use tokenrail_domain::{Agent, AgentId, Sequence};

use crate::api::Api;
use crate::error::Problem;
use crate::fold::{Begins, Fold as _};
use crate::vocabularies::native::dto::client::Subscribe;
use crate::vocabularies::native::ws::wishes::Wishes;
use crate::vocabularies::native::{Detail, Dialect, DialectFold, Teller, TextMode};

/// An agent that is followed from now on.
pub(crate) struct Followed {
    pub(crate) agent: Agent,
    /// The sequence number of the newest event.
    pub(crate) head: Sequence,
    pub(crate) follower: Follower,
    pub(crate) teller: Teller,
}

/// Follows an agent. If the agent has been deleted before, the follower ends with the last turn, because no follower is
/// told of an earlier deletion.
///
/// # Errors
/// [`Problem`] if the agent is unknown, the cursor is ahead of the newest event, or the store fails.
pub(crate) async fn follow_to_deletion(
    api: &Api,
    agent: AgentId,
    since: Option<Sequence>,
) -> Result<(Agent, Follower), Problem> {
    let (agent, follower) = api.service().follow(agent, since, AfterLastTurn::Wait).await?;
    if agent.deleted_at.is_none() {
        return Ok((agent, follower));
    }
    Ok(api.service().follow(agent.id, Some(follower.cursor()), AfterLastTurn::End).await?)
}

/// Follows an agent as the client has requested.
///
/// # Errors
/// [`Problem`] if the agent is unknown, the cursor is ahead of the newest event, or the store fails.
pub(crate) async fn follow(api: &Api, wish: &Subscribe, wishes: &Wishes) -> Result<Followed, Problem> {
    let since = wish.since.map(Sequence);
    let dialect = wish.dialect.unwrap_or(wishes.dialect);
    let (agent, follower) = follow_to_deletion(api, wish.agent, since).await?;
    let packed = wish.packed.unwrap_or(wishes.packed);
    let fold = DialectFold::new(dialect, agent.id, Detail::of(wish.raw, packed));
    let (head, cursor) = (follower.head(), follower.cursor());
    let begin = match fold.begins() {
        Begins::Anywhere => cursor,
        Begins::WithTurn => begin(api, agent.id, cursor).await?,
    };
    let follower =
        if begin == cursor { follower } else { follow_to_deletion(api, agent.id, Some(begin)).await?.1 };
    let text_mode = match dialect {
        // The throttle joins the pieces that wait.
        Dialect::Stream if wishes.throttle.is_some() => TextMode::Pieces,
        _ if packed => TextMode::Packed,
        _ => TextMode::Plain,
    };
    let teller = Teller::new(fold, cursor, since.is_none(), text_mode);
    Ok(Followed { agent, head, follower, teller })
}

/// Where a fold must begin in order to show the events after the cursor: before the turn in which the cursor lies.
async fn begin(api: &Api, agent: AgentId, cursor: Sequence) -> Result<Sequence, Problem> {
    Ok(api.service().turn_begin(agent, cursor).await?)
}
