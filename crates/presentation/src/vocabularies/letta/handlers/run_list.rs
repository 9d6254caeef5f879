//! The list of the runs of all agents: filtered, in pages, newest first unless the client asks for another order.

use tokenrail_application::{ListPage, TurnFilter};
use tokenrail_domain::{AgentId, ListedTurn, Turn, TurnNumber, TurnOutcome, TurnState};

use super::agents::known;
use super::ids::{conversation_id, run as find};
use super::journal::End;
use super::range::Range;
use super::run::{run_dto, shown};
use crate::api::Api;
use crate::error::{Code, Problem};
use crate::query::Query;
use crate::vocabularies::letta::dto::{RUN_STATUSES, RunDto};
use crate::vocabularies::letta::run_id::RunId;

/// The maximum number of runs that are checked for one page. If few of them match, the page is short.
const LOOKED_AT: usize = 10_000;
/// The minimum number of runs that are read from the store at once.
const READ: usize = 100;

/// Which runs the client wants.
struct Wanted {
    turns: TurnFilter,
    /// The run at which the page ends, if the client names one.
    until: Option<(AgentId, TurnNumber)>,
    limit: usize,
    /// The client wants the runs before a cursor, so the page is built from its end.
    backwards: bool,
    /// Empty: any status.
    statuses: Vec<String>,
    stop_reason: Option<String>,
    background: bool,
}

/// Reads a page of runs.
pub(super) async fn list(api: &Api, query: &Query) -> Result<Vec<RunDto>, Problem> {
    let mut wanted = Wanted::of(api, query).await?;
    let mut runs = Vec::new();
    let mut looked_at = 0;
    'pages: while looked_at < LOOKED_AT && wanted.background {
        let ListPage { items: turns, more } = api.service().all_turns(wanted.turns.clone()).await?;
        let Some(last) = turns.last() else { break };
        looked_at += turns.len();
        wanted.turns.behind = Some((last.turn.agent, last.turn.number));
        for listed in &turns {
            let turn = &listed.turn;
            if runs.len() == wanted.limit || wanted.until == Some((turn.agent, turn.number)) {
                break 'pages;
            }
            if let Some(run) = wanted.run(api, listed).await? {
                runs.push(run);
            }
        }
        if !more {
            break;
        }
    }
    if wanted.backwards {
        runs.reverse();
    }
    Ok(runs)
}

impl Wanted {
    async fn of(api: &Api, query: &Query) -> Result<Self, Problem> {
        // For a text that is absent, Letta's clients may send the name without a value.
        let given = |name| query.get(name).filter(|value| !value.is_empty());
        let mut range = Range::of(query, api)?;
        if query.get("order").is_none() {
            range.ascending = flag(query, "ascending")?.unwrap_or(false);
        }
        if !matches!(query.get("order_by"), None | Some("created_at")) {
            return Err(Problem::parameter("order_by", "must be created_at"));
        }
        let statuses: Vec<String> = given_all(query, "statuses").map(str::to_owned).collect();
        if statuses.iter().any(|status| !RUN_STATUSES.contains(&status.as_str())) {
            return Err(Problem::parameter(
                "statuses",
                format!("must be one of: {}", RUN_STATUSES.join(", ")),
            ));
        }
        let after = cursor(api, "after", given("after")).await?;
        let before = cursor(api, "before", given("before")).await?;
        let backwards = after.is_none() && before.is_some();
        let max = api.config().list_agents;
        let turns = TurnFilter {
            agents: agents(api, query).await?,
            open: flag(query, "active")?.unwrap_or(false),
            behind: after.or(before),
            oldest_first: range.ascending != backwards,
            limit: range.limit.max(READ).min(max),
        };
        Ok(Self {
            turns,
            until: before.filter(|_| !backwards),
            limit: range.limit,
            backwards,
            statuses,
            stop_reason: given("stop_reason").map(str::to_owned),
            // Every run continues without its client, so `background=false` matches no run.
            background: flag(query, "background")?.unwrap_or(true),
        })
    }

    /// Returns the run if the client wants it.
    async fn run(&self, api: &Api, listed: &ListedTurn) -> Result<Option<RunDto>, Problem> {
        let turn = &listed.turn;
        if !self.may_want(turn) {
            return Ok(None);
        }
        let run = RunId { agent: turn.agent, turn: turn.number, tokens: false };
        let run = match End::noted(listed) {
            Some(end) => run_dto(run, turn, Some(end)),
            None => shown(api, run, turn).await?,
        };
        let of_status = self.statuses.is_empty() || self.statuses.iter().any(|status| status == run.status);
        let of_reason = self.stop_reason.is_none() || self.stop_reason.as_deref() == run.stop_reason;
        Ok((of_status && of_reason).then_some(run))
    }

    /// Whether the client may want the run, as far as the turn alone shows. How the turn ended is in its events, which
    /// are read only if necessary.
    fn may_want(&self, turn: &Turn) -> bool {
        let may_be: &[&str] = match turn.state {
            TurnState::Queued => &["created"],
            TurnState::Running => &["running"],
            TurnState::Ended(TurnOutcome::Completed) => &["completed", "failed"],
            TurnState::Ended(TurnOutcome::Cancelled) => &["cancelled"],
            TurnState::Ended(TurnOutcome::Failed | TurnOutcome::Interrupted) => &["failed"],
        };
        let ended = matches!(turn.state, TurnState::Ended(_));
        (ended || self.stop_reason.is_none())
            && (self.statuses.is_empty()
                || self.statuses.iter().any(|status| may_be.contains(&status.as_str())))
    }
}

/// The agents whose runs the client wants. Empty: all agents. Each agent that the client names must exist.
async fn agents(api: &Api, query: &Query) -> Result<Vec<AgentId>, Problem> {
    let mut agents = Vec::new();
    for named in given_all(query, "agent_id").chain(given_all(query, "agent_ids")) {
        agents.push(known(api, named).await?.id);
    }
    if let Some(path) = given_all(query, "conversation_id").next() {
        let agent = conversation_id(path, query.get("agent_id"))?;
        if !agents.is_empty() && !agents.contains(&agent) {
            return Err(Problem::parameter(
                "conversation_id",
                "must be a conversation of one of the agents named in agent_id or agent_ids",
            ));
        }
        agents = vec![known(api, &agent.to_string()).await?.id];
    }
    Ok(agents)
}

/// Reads the run of a cursor, which must exist. If an unknown cursor were ignored, the client would read the same page
/// forever.
async fn cursor(
    api: &Api,
    name: &'static str,
    run: Option<&str>,
) -> Result<Option<(AgentId, TurnNumber)>, Problem> {
    let Some(run) = run else { return Ok(None) };
    match find(api, run).await {
        Ok((run, _)) => Ok(Some((run.agent, run.turn))),
        Err(Problem { code: Code::NotFound, .. }) => Err(Problem::parameter(name, "no such run")),
        Err(problem) => Err(problem),
    }
}

fn given_all<'a>(query: &'a Query, name: &'a str) -> impl Iterator<Item = &'a str> {
    query.all(name).filter(|value| !value.is_empty())
}

fn flag(query: &Query, name: &'static str) -> Result<Option<bool>, Problem> {
    match query.get(name) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(Problem::parameter(name, "must be true or false")),
    }
}
