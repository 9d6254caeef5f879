//! How a user names an agent: by its id, by the beginning of the id, or as `latest`.
//!
//! Ids sort by launch time, and the list of agents is newest first. So the agents whose ids have the same beginning are
//! neighbours in the list, and one page of it, which begins after the highest possible id, is enough to find them.

use std::fmt::Write as _;

use clap::Args;
use reqwest::header::LINK;
use serde::Deserialize;
use tokenrail_domain::AgentId;

use super::client::Client;
use super::{Exit, Failure};

/// The beginning of an id must have this many characters. Shorter words are more likely typing errors.
const BEGINNING_CHARS: usize = 4;
/// How many agents an error about an ambiguous beginning lists.
const LISTED: usize = 10;
/// How much of a prompt it shows.
const PROMPT_CHARS: usize = 40;
/// The highest id.
const HIGHEST: &str = "ffffffff-ffff-ffff-ffff-ffffffffffff";
const LATEST: &str = "latest";

#[derive(Debug, Args)]
pub(crate) struct AgentArg {
    /// The agent's id, the beginning of it (at least 4 characters), or `latest` for the newest agent
    id: String,
}

impl AgentArg {
    /// The agent's id.
    ///
    /// # Errors
    /// If no agent or more than one agent can be meant, or as [`Client::get`].
    pub(crate) async fn find(&self, client: &Client) -> Result<String, Failure> {
        find(client, &self.id).await
    }
}

/// The id of the agent that the user means, on this server.
pub(crate) async fn find(client: &Client, text: &str) -> Result<String, Failure> {
    let wanted = Wanted::parse(text)?;
    if let Wanted::Id(id) = wanted {
        return Ok(id.to_string());
    }
    let mut found: Vec<Candidate> = Vec::new();
    for archived in wanted.lists() {
        for candidate in matching(client, &wanted, archived).await? {
            // A server that does not know archived agents returns the same list twice.
            if found.iter().all(|other| other.id != candidate.id) {
                found.push(candidate);
            }
        }
    }
    wanted.choose(found)
}

/// The ids of all the agents that the user means, each once.
pub(crate) async fn find_all(client: &Client, texts: &[String]) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    for text in texts {
        let id = find(client, text).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// The agents that may be meant, of the archived ones or of the others.
async fn matching(client: &Client, wanted: &Wanted, archived: &str) -> Result<Vec<Candidate>, Failure> {
    let limit = wanted.limit().to_string();
    let (mut before, mut found) = (wanted.before(), Vec::new());
    // Each page has at least one more match, and `limit` of them are enough.
    loop {
        let mut query = vec![("limit", limit.as_str()), ("archived", archived)];
        query.extend(before.as_deref().map(|before| ("before", before)));
        let answer = client.get(&["api", "agents"], &query).await?;
        let has_more = answer.headers().contains_key(LINK);
        let page: Vec<Candidate> = answer.json().await?;
        before = page.last().map(|last| last.id.clone());
        let listed = page.len();
        let matches = page.into_iter().filter(|candidate| wanted.is(&candidate.id));
        let already = found.len();
        found.extend(matches);
        let all_match = found.len() - already == listed;
        if !has_more || !all_match || wanted.limit() <= found.len() {
            return Ok(found);
        }
    }
}

/// What a user has typed in place of an id.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Id(AgentId),
    Latest,
    Beginning(String),
}

/// An agent that may be meant.
#[derive(Debug, Deserialize)]
pub(crate) struct Candidate {
    pub(crate) id: String,
    pub(crate) status: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) prompt: String,
}

impl Wanted {
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        if text == LATEST {
            return Ok(Self::Latest);
        }
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        let fits = |(c, pattern): (char, char)| if pattern == '-' { c == '-' } else { c.is_ascii_hexdigit() };
        if text.is_empty() || HIGHEST.len() <= text.len() || !text.chars().zip(HIGHEST.chars()).all(fits) {
            return Err(Failure::new(Exit::Failed, "no such agent (not_found)").coded("not_found"));
        }
        if text.len() < BEGINNING_CHARS {
            let hint =
                format!("{text:?} is too short for the beginning of an id; type at least 4 characters");
            return Err(Failure::new(Exit::Failed, hint).coded("not_found"));
        }
        Ok(Self::Beginning(text.to_ascii_lowercase()))
    }

    /// The agents that may be meant come directly after this id in the list. `None`: they come first.
    pub(crate) fn before(&self) -> Option<String> {
        match self {
            Self::Beginning(text) => Some(format!("{text}{}", &HIGHEST[text.len()..])),
            Self::Id(_) | Self::Latest => None,
        }
    }

    /// The lists in which they may be, as values of `archived`.
    fn lists(&self) -> &'static [&'static str] {
        match self {
            Self::Beginning(_) => &["false", "true"],
            Self::Id(_) | Self::Latest => &["false"],
        }
    }

    /// How many agents of the list must be known to choose one.
    pub(crate) fn limit(&self) -> usize {
        match self {
            Self::Beginning(_) => LISTED + 1,
            Self::Id(_) | Self::Latest => 1,
        }
    }

    pub(crate) fn is(&self, id: &str) -> bool {
        match self {
            Self::Beginning(text) => id.starts_with(text.as_str()),
            Self::Id(_) | Self::Latest => true,
        }
    }

    /// Chooses one of the agents that are meant, or says why that is impossible.
    pub(crate) fn choose(&self, mut found: Vec<Candidate>) -> Result<String, Failure> {
        let text = match self {
            Self::Beginning(text) => text.as_str(),
            Self::Id(_) | Self::Latest => LATEST,
        };
        if found.len() <= 1 {
            return found.pop().map(|only| only.id).ok_or_else(|| {
                let why = if text == LATEST { "there are no agents yet" } else { "no id begins with it" };
                Failure::new(Exit::Failed, format!("no such agent: {text}: {why} (not_found)"))
                    .coded("not_found")
            });
        }
        let count =
            if LISTED < found.len() { format!("more than {LISTED}") } else { found.len().to_string() };
        let mut message = format!("{text} is the beginning of {count} ids; type more of the id:");
        for Candidate { id, status, kind, prompt } in found.into_iter().take(LISTED) {
            let prompt: String = prompt.chars().take(PROMPT_CHARS).filter(|c| !c.is_control()).collect();
            // Writing to a string cannot fail.
            let _ = write!(message, "\n  {id}  {status}  {kind}  {prompt}");
        }
        Err(Failure::new(Exit::Failed, message).coded("ambiguous_id"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Wanted::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn only_the_beginning_of_an_id_is_searched_for() {
        let id = "019a2b3c-0000-7000-8000-000000000001";
        assert_eq!(Wanted::parse(id).unwrap(), Wanted::Id(id.parse().unwrap()));
        assert_eq!(Wanted::parse("latest").unwrap(), Wanted::Latest);
        assert_eq!(Wanted::parse("019A2b3c-").unwrap(), Wanted::Beginning("019a2b3c-".to_owned()));
        assert!(error("019").contains("type at least 4 characters"));
        for text in ["", "..", "019a2b3c0", "019a2b3c-0000x", "00000000-0000-0000-0000-0000000000000"] {
            assert!(error(text).contains("no such agent (not_found)"), "{text}");
        }
    }

    #[test]
    fn the_search_begins_after_the_highest_id_with_that_beginning() {
        let before = |text: &str| Wanted::parse(text).unwrap().before().unwrap();
        assert_eq!(before("019a"), "019affff-ffff-ffff-ffff-ffffffffffff");
        assert_eq!(before("019a2b3c-0"), "019a2b3c-0fff-ffff-ffff-ffffffffffff");
    }
}
