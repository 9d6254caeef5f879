//! Begins to follow an agent, in the dialect that the client speaks.

use tokenrail_application::Follower;
use tokenrail_domain::{Agent, AgentId, Sequence};

use crate::api::Api;
use crate::dialect::{Detail, Dialect, Fold, Folded, Teller, Telling, Writing, WritingForm};
use crate::dto::Subscribe;
use crate::error::Problem;
use crate::ws::wishes::Wishes;

/// An agent that is followed from now on.
pub(crate) struct Followed {
    pub(crate) agent: Agent,
    /// The newest event.
    pub(crate) head: Sequence,
    pub(crate) follower: Follower,
    pub(crate) teller: Teller,
}

/// Follows an agent as the client wishes.
///
/// # Errors
/// [`Problem`] where the agent or the cursor is unknown.
pub(crate) async fn follow(api: &Api, wish: &Subscribe, wishes: &Wishes) -> Result<Followed, Problem> {
    let since = wish.since.map(Sequence);
    let dialect = wish.dialect.unwrap_or(wishes.dialect);
    let (agent, follower) = api.service().follow(wish.agent, since, true).await?;
    let packed = wish.packed.unwrap_or(wishes.packed);
    let (head, cursor) = (follower.head(), follower.cursor());
    let Some(fold) = Fold::new(dialect, agent.id) else {
        let writing = Writing { form: WritingForm::Frames, detail: Detail::of(wish.raw, packed) };
        let teller = Teller::Shared { agent: agent.id, writing };
        return Ok(Followed { agent, head, follower, teller });
    };
    let begin = begin(api, agent.id, cursor).await?;
    let follower =
        if begin == cursor { follower } else { api.service().follow(agent.id, Some(begin), true).await?.1 };
    let telling = match dialect {
        // What waits at the throttle is joined there.
        Dialect::Stream if wishes.throttle.is_some() => Telling::Pieces,
        _ if packed => Telling::Packed,
        _ => Telling::Plain,
    };
    let teller = Teller::Folded(Box::new(Folded::new(fold, cursor, since.is_none(), telling)));
    Ok(Followed { agent, head, follower, teller })
}

/// Where a fold must begin that is to tell what comes after the cursor: before the turn to which that belongs.
async fn begin(api: &Api, agent: AgentId, cursor: Sequence) -> Result<Sequence, Problem> {
    let next = api.service().turn_at(agent, cursor.next()).await?;
    let turn = if next.is_some() {
        next
    } else {
        // What comes next belongs to the turn that is not over yet, if there is one.
        let turn = api.service().turn_at(agent, cursor).await?;
        turn.filter(|turn| turn.last_sequence.is_none_or(|last| cursor < last))
    };
    let first = turn.and_then(|turn| turn.first_sequence);
    Ok(first.map_or(cursor, |first| Sequence(first.0.saturating_sub(1)).min(cursor)))
}
