//! `tokenrail reparse`: parses the stored lines of agents again with the parsers of this version.
//!
//! It opens the data folder itself, and no server may run there: the data in a server's memory would become stale.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tokenrail_application::{AgentFilter, AgentService, Finding, Refusal, Reparsed};
use tokenrail_domain::{AgentId, Event};
use tokenrail_presentation::event_json;
use tokio::runtime::Handle;

use super::agent_id::{Candidate, Search, Wanted};
use super::screen::{Screen, Style, counted};
use super::{Exit, Failure};
use crate::compose;
use crate::config::Config;
use crate::store::Store;

/// How long the tasks of the service may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Args)]
pub(crate) struct ReparseArgs {
    /// The agent's id, the beginning or the end of it (at least 4 characters), or `latest`; required unless --all is
    /// given
    #[arg(required_unless_present = "all")]
    id: Option<String>,
    /// Reparse all agents
    #[arg(long, conflicts_with = "id")]
    all: bool,
    /// Save the differences; without this flag they are only shown
    #[arg(long)]
    apply: bool,
    /// Maximum number of differences to show for each agent; further differences are only counted
    #[arg(long, default_value_t = 20, value_name = "N")]
    limit: u64,
}

/// The sum over all agents.
#[derive(Default)]
struct Total {
    agents: u64,
    reparsed: Reparsed,
    skipped: u64,
}

pub(crate) async fn reparse(
    config: &Config,
    args: ReparseArgs,
    screen: &mut Screen,
) -> Result<Exit, Failure> {
    let store = Store::open(config).await?;
    let outside = compose::outside(config, &store)?;
    let service = AgentService::new(outside, compose::limits::all_limits(config), Handle::current());
    let done = reparse_agents(&service, &args, screen).await;
    service.shutdown(tokenrail_application::AtStop::Keep, PATIENCE).await;
    store.close().await;
    let total = done?;
    show_total(&total, args.apply, screen);
    let clean = total.reparsed.refused == 0 && (args.apply || total.reparsed.changed == 0);
    Ok(if clean { Exit::Completed } else { Exit::Failed })
}

async fn reparse_agents(
    service: &AgentService,
    args: &ReparseArgs,
    screen: &mut Screen,
) -> Result<Total, Failure> {
    let mut total = Total::default();
    if let Some(text) = &args.id {
        let id = find(service, text).await?;
        reparse_one(service, id, args, screen, &mut total).await?;
        return Ok(total);
    }
    let mut filter = AgentFilter { limit: 100, ..AgentFilter::default() };
    loop {
        let agents = service.list(filter.clone()).await?.items;
        let Some(last) = agents.last() else { return Ok(total) };
        filter.before = Some(last.agent.id);
        for listed in &agents {
            reparse_one(service, listed.agent.id, args, screen, &mut total).await?;
        }
    }
}

/// The id of the agent that the user means, in this data folder.
async fn find(service: &AgentService, text: &str) -> Result<AgentId, Failure> {
    let wanted = Wanted::parse(text)?;
    if let Wanted::Id(id) = wanted {
        return Ok(id);
    }
    let mut found: Vec<Candidate> = Vec::new();
    for search in wanted.searches() {
        for candidate in matching(service, &search).await? {
            if found.iter().all(|other| other.id != candidate.id) {
                found.push(candidate);
            }
        }
    }
    Ok(wanted.choose(found)?.parse()?)
}

/// The agents that may be meant, in this data folder.
async fn matching(service: &AgentService, search: &Search) -> Result<Vec<Candidate>, Failure> {
    let before = search.before().and_then(|before| before.parse().ok());
    let mut filter = AgentFilter { limit: search.page_agents(), before, ..AgentFilter::default() };
    let mut found = Vec::new();
    loop {
        let agents = service.list(filter.clone()).await?.items;
        let Some(last) = agents.last() else { return Ok(found) };
        filter.before = Some(last.agent.id);
        let candidates = agents.into_iter().map(|listed| Candidate {
            id: listed.agent.id.to_string(),
            status: listed.agent.status.as_str().to_owned(),
            kind: listed.agent.kind,
            prompt: listed.agent.prompt,
        });
        found.extend(candidates.filter(|candidate| search.is(&candidate.id)));
        if search.is_in_a_row() || search.enough() <= found.len() {
            return Ok(found);
        }
    }
}

async fn reparse_one(
    service: &AgentService,
    id: AgentId,
    args: &ReparseArgs,
    screen: &mut Screen,
    total: &mut Total,
) -> Result<(), Failure> {
    let (mut findings, mut more) = (Vec::new(), 0_u64);
    let mut tell = |finding| {
        if (findings.len() as u64) < args.limit { findings.push(finding) } else { more += 1 }
    };
    let reparsed = match service.reparse(id, args.apply, &mut tell).await {
        Ok(reparsed) => reparsed,
        Err(Refusal::UnknownType { name, .. }) if args.all => {
            total.skipped += 1;
            screen.note(&format!("{id}: skipped, unknown agent type {name:?}"));
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    for finding in &findings {
        show(id, finding, screen);
    }
    if 0 < more {
        screen
            .note(&format!("{id}: {} not shown; to show more, raise --limit", counted(more, "more change")));
    }
    total.agents += 1;
    total.reparsed.events += reparsed.events;
    total.reparsed.changed += reparsed.changed;
    total.reparsed.refused += reparsed.refused;
    Ok(())
}

fn show(id: AgentId, finding: &Finding, screen: &mut Screen) {
    let text = |event: &Event| event_json(id, event);
    let agent = id.to_string();
    match finding {
        Finding::Changed { stored, parsed } if screen.json => {
            let (turn, stored, parsed) = (stored.turn.0, text(stored), text(parsed));
            let line = format!(
                "{{\"agentId\":\"{agent}\",\"turn\":{turn},\"stored\":{stored},\"parsed\":{parsed}}}"
            );
            screen.line(Style::Plain, &line);
        }
        Finding::Changed { stored, parsed } => {
            screen.line(Style::Bold, &format!("{agent} turn {} event {}", stored.turn, stored.sequence));
            screen.line(Style::Bad, &format!("- {}", text(stored)));
            screen.line(Style::Good, &format!("+ {}", text(parsed)));
        }
        Finding::Refused { turn, reason } if screen.json => {
            let line = json!({ "agentId": agent, "turn": turn.0, "refused": reason });
            screen.line(Style::Plain, &line.to_string());
        }
        Finding::Refused { turn, reason } => {
            screen.line(
                Style::Bad,
                &format!(
                    "{agent}: cannot reparse turn {turn}, nor the turns directly after it that no message started: \
                     {reason}"
                ),
            );
        }
    }
}

fn show_total(total: &Total, applied: bool, screen: &mut Screen) {
    if screen.json {
        let Total { agents, reparsed: Reparsed { events, changed, refused }, skipped } = total;
        let line = json!({
            "agents": agents, "events": events, "changed": changed, "refused": refused, "skipped": skipped,
            "applied": applied,
        });
        screen.line(Style::Plain, &line.to_string());
        return;
    }
    screen.line(Style::Plain, &total_text(total, applied));
}

fn total_text(total: &Total, applied: bool) -> String {
    // Each skipped agent was reported when it was skipped.
    let Total { agents, reparsed: Reparsed { events, changed, refused }, skipped: _ } = total;
    let done = match (applied, changed) {
        (_, 0) => "no changes".to_owned(),
        (true, changed) if 0 < *refused => format!("{changed} changed"),
        (true, changed) => format!("{changed} changed and saved"),
        (false, changed) => format!("{changed} would change; nothing saved (use --apply to save)"),
    };
    let refused = match (refused, applied && 0 < *changed) {
        (0, _) => "",
        // The count may include changes at the beginning of these turns.
        (_, true) => "; saved, except those in turns that could not be reparsed (see above)",
        (_, false) => "; some turns could not be reparsed (see above)",
    };
    let (events, agents) = (counted(*events, "event"), counted(*agents, "agent"));
    format!("{events} of {agents}: {done}{refused}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(changed: u64, refused: u64, applied: bool) -> String {
        let reparsed = Reparsed { events: 9, changed, refused };
        total_text(&Total { agents: 2, reparsed, skipped: 0 }, applied)
    }

    #[test]
    fn the_total_says_once_that_turns_could_not_be_reparsed() {
        assert_eq!(text(5, 0, true), "9 events of 2 agents: 5 changed and saved");
        assert_eq!(
            text(5, 1, true),
            "9 events of 2 agents: 5 changed; saved, except those in turns that could not be reparsed (see above)"
        );
        assert_eq!(
            text(0, 1, true),
            "9 events of 2 agents: no changes; some turns could not be reparsed (see above)"
        );
        assert_eq!(
            text(5, 1, false),
            "9 events of 2 agents: 5 would change; nothing saved (use --apply to save); some turns could not be \
             reparsed (see above)"
        );
    }
}
