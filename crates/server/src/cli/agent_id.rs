//! How a user names an agent: by its id, by the beginning or the end of the id, or as `latest`.
//!
//! Ids sort by launch time, and the list of agents is newest first. So the agents whose ids have the same beginning are
//! neighbours in the list, and one page of it, which begins after the highest possible id, is enough to find them.
//! Agents that are launched in the same minute have the same beginning; the end of an id is random. To find an end, the
//! whole list is read.

use std::fmt::{self, Write as _};

use clap::Args;
use reqwest::header::LINK;
use serde::Deserialize;
use tokenrail_domain::AgentId;

use super::client::Client;
use super::{Exit, Failure};

/// The beginning or end of an id must have this many characters. Shorter words are more likely typing errors.
const PART_CHARS: usize = 4;
/// How many agents an error about an ambiguous part lists.
const LISTED: usize = 10;
/// How many agents a page has, if the server allows it, and how many pages are searched for the end of an id.
const PAGE_AGENTS: usize = 500;
const PAGES_MAX: usize = 100;
/// How many characters of an id's end a list marks at least: enough for thousands of agents.
const SHOWN_CHARS: usize = 6;
/// How much of a prompt it shows.
const PROMPT_CHARS: usize = 40;
/// The highest id.
const HIGHEST: &str = "ffffffff-ffff-ffff-ffff-ffffffffffff";
const LATEST: &str = "latest";
/// The code of the error if so many agents exist that not all of them are searched.
const TOO_MANY: &str = "too_many_agents";

#[derive(Debug, Args)]
pub(crate) struct AgentArg {
    /// The agent's id, the beginning or the end of it (at least 4 characters), or `latest` for the newest agent
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
    for search in wanted.searches() {
        for archived in search.lists() {
            if LISTED < found.len() {
                break;
            }
            let more = match matching(client, &search, archived).await {
                // The beginning of an id is enough then.
                Err(error) if error.code() == TOO_MANY && !found.is_empty() => Vec::new(),
                more => more?,
            };
            for candidate in more {
                // A server that does not know archived agents returns the same list twice.
                if found.iter().all(|other| other.id != candidate.id) {
                    found.push(candidate);
                }
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
async fn matching(client: &Client, search: &Search, archived: &str) -> Result<Vec<Candidate>, Failure> {
    let limit = search.page_agents().to_string();
    let (mut before, mut found) = (search.before(), Vec::new());
    for _ in 0..PAGES_MAX {
        let mut query = vec![("limit", limit.as_str()), ("archived", archived)];
        query.extend(before.as_deref().map(|before| ("before", before)));
        let answer = client.get(&["api", "agents"], &query).await?;
        let has_more = answer.headers().contains_key(LINK);
        let page: Vec<Candidate> = answer.json().await?;
        before = page.last().map(|last| last.id.clone());
        let listed = page.len();
        let already = found.len();
        found.extend(page.into_iter().filter(|candidate| search.is(&candidate.id)));
        let all_match = found.len() - already == listed;
        if !has_more || search.enough() <= found.len() || !all_match && search.is_in_a_row() {
            return Ok(found);
        }
    }
    let hint = format!(
        "cannot search for {search}, because there are too many agents; type the beginning of the id, or all of it"
    );
    Err(Failure::new(Exit::Failed, hint).coded(TOO_MANY))
}

/// What a user has typed in place of an id.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Id(AgentId),
    Latest,
    /// A text that can be the beginning of an id, its end, or both.
    Part {
        text: String,
        begins: bool,
        ends: bool,
    },
}

/// One search for the agents that a user may mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Search {
    Newest,
    Beginning(String),
    End(String),
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
        let unknown = || Failure::new(Exit::Failed, "no such agent (not_found)").coded("not_found");
        let skipped =
            HIGHEST.len().checked_sub(text.len()).filter(|skipped| 0 < *skipped).ok_or_else(unknown)?;
        let fits = |(c, pattern): (char, char)| if pattern == '-' { c == '-' } else { c.is_ascii_hexdigit() };
        let begins = text.chars().zip(HIGHEST.chars()).all(fits);
        let ends = text.is_ascii() && text.chars().zip(HIGHEST.chars().skip(skipped)).all(fits);
        if text.is_empty() || !begins && !ends {
            return Err(unknown());
        }
        if text.len() < PART_CHARS {
            let hint = format!(
                "{text:?} is too short for the beginning or end of an id; type at least 4 characters"
            );
            return Err(Failure::new(Exit::Failed, hint).coded("not_found"));
        }
        Ok(Self::Part { text: text.to_ascii_lowercase(), begins, ends })
    }

    /// What to search for.
    pub(crate) fn searches(&self) -> Vec<Search> {
        match self {
            Self::Part { text, begins, ends } => {
                let beginning = begins.then(|| Search::Beginning(text.clone()));
                beginning.into_iter().chain(ends.then(|| Search::End(text.clone()))).collect()
            }
            Self::Id(_) | Self::Latest => vec![Search::Newest],
        }
    }

    /// Chooses one of the agents that are meant, or says why that is impossible.
    pub(crate) fn choose(&self, mut found: Vec<Candidate>) -> Result<String, Failure> {
        let text = match self {
            Self::Part { text, .. } => text.as_str(),
            Self::Id(_) | Self::Latest => LATEST,
        };
        if found.len() <= 1 {
            return found.pop().map(|only| only.id).ok_or_else(|| {
                let why = match text {
                    LATEST => {
                        "there are no agents in the list; `tokenrail ls --archived` lists the archived ones"
                    }
                    _ => "no id begins or ends with it",
                };
                Failure::new(Exit::Failed, format!("no such agent: {text}: {why} (not_found)"))
                    .coded("not_found")
            });
        }
        let place = match found.iter().filter(|candidate| candidate.id.starts_with(text)).count() {
            0 => "end",
            begin if begin == found.len() => "beginning",
            _ => "beginning or end",
        };
        let count =
            if LISTED < found.len() { format!("more than {LISTED}") } else { found.len().to_string() };
        let mut message = format!("{text} is the {place} of {count} ids; type more of the id:");
        for Candidate { id, status, kind, prompt } in found.into_iter().take(LISTED) {
            let prompt: String = prompt.chars().take(PROMPT_CHARS).filter(|c| !c.is_control()).collect();
            // Writing to a string cannot fail.
            let _ = write!(message, "\n  {id}  {status}  {kind}  {prompt}");
        }
        Err(Failure::new(Exit::Failed, message).coded("ambiguous_id"))
    }
}

impl Search {
    /// The agents that may be meant come directly after this id in the list. `None`: they come first, or anywhere.
    pub(crate) fn before(&self) -> Option<String> {
        match self {
            Self::Beginning(text) => Some(format!("{text}{}", &HIGHEST[text.len()..])),
            Self::Newest | Self::End(_) => None,
        }
    }

    /// The lists in which they may be, as values of `archived`.
    fn lists(&self) -> &'static [&'static str] {
        match self {
            Self::Beginning(_) | Self::End(_) => &["false", "true"],
            Self::Newest => &["false"],
        }
    }

    /// How many agents must be found to choose one.
    pub(crate) fn enough(&self) -> usize {
        match self {
            Self::Beginning(_) | Self::End(_) => LISTED + 1,
            Self::Newest => 1,
        }
    }

    /// How many agents to read at once.
    pub(crate) fn page_agents(&self) -> usize {
        match self {
            Self::End(_) => PAGE_AGENTS,
            Self::Newest | Self::Beginning(_) => self.enough(),
        }
    }

    /// Whether an agent that is not meant ends the search.
    pub(crate) fn is_in_a_row(&self) -> bool {
        !matches!(self, Self::End(_))
    }

    pub(crate) fn is(&self, id: &str) -> bool {
        match self {
            Self::Beginning(text) => id.starts_with(text.as_str()),
            Self::End(text) => id.ends_with(text.as_str()),
            Self::Newest => true,
        }
    }
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beginning(text) | Self::End(text) => f.write_str(text),
            Self::Newest => f.write_str(LATEST),
        }
    }
}

/// The shortest end of this id that is the end of none of the others: what a user types to name the agent.
pub(crate) fn short_end<'a>(id: &'a str, others: &[&str]) -> &'a str {
    let alike = |other: &&str| id.bytes().rev().zip(other.bytes().rev()).take_while(|(a, b)| a == b).count();
    let alike = others.iter().filter(|other| **other != id).map(alike).max().unwrap_or(0);
    let chars = SHOWN_CHARS.max(alike + 1).min(id.len());
    id.get(id.len() - chars..).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Wanted::parse(text).unwrap_err().to_string()
    }

    fn part(text: &str, begins: bool, ends: bool) -> Wanted {
        Wanted::Part { text: text.to_owned(), begins, ends }
    }

    #[test]
    fn only_the_beginning_or_the_end_of_an_id_is_searched_for() {
        let id = "019a2b3c-0000-7000-8000-000000000001";
        assert_eq!(Wanted::parse(id).unwrap(), Wanted::Id(id.parse().unwrap()));
        assert_eq!(Wanted::parse("latest").unwrap(), Wanted::Latest);
        assert_eq!(Wanted::parse("019A2b3c-").unwrap(), part("019a2b3c-", true, false));
        assert_eq!(Wanted::parse("019a").unwrap(), part("019a", true, true));
        assert_eq!(Wanted::parse("000000001").unwrap(), part("000000001", false, true));
        assert_eq!(Wanted::parse("8000-000000000001").unwrap(), part("8000-000000000001", false, true));
        assert!(error("019").contains("type at least 4 characters"));
        let wrong = ["", "..", "019a2b3c-0000x", "00-00", "ä00000", "00000000-0000-0000-0000-0000000000000"];
        for text in wrong {
            assert!(error(text).contains("no such agent (not_found)"), "{text}");
        }
    }

    #[test]
    fn the_search_begins_after_the_highest_id_with_that_beginning() {
        let before = |text: &str| Search::Beginning(text.to_owned()).before().unwrap();
        assert_eq!(before("019a"), "019affff-ffff-ffff-ffff-ffffffffffff");
        assert_eq!(before("019a2b3c-0"), "019a2b3c-0fff-ffff-ffff-ffffffffffff");
    }

    #[test]
    fn the_end_that_is_shown_names_one_agent_of_the_list() {
        let id = "019a2b3c-0000-7000-8000-0000aaaaaaaa";
        assert_eq!(short_end(id, &[id]), "aaaaaa");
        assert_eq!(short_end(id, &["019a2b3c-0000-7000-8000-0000baaaaaaa", id]), "aaaaaaaa");
    }

    #[test]
    fn an_error_about_several_agents_says_which_part_of_their_ids_it_is() {
        let candidate = |id: &str| Candidate {
            id: id.to_owned(),
            status: "running".to_owned(),
            kind: "fake".to_owned(),
            prompt: "hi".to_owned(),
        };
        let both = ["abcd0000-0000-7000-8000-000000000001", "019a2b3c-0000-7000-8000-00000000abcd"];
        let said = part("abcd", true, true).choose(both.map(candidate).into()).unwrap_err().to_string();
        assert!(said.starts_with("abcd is the beginning or end of 2 ids;"), "{said}");
        assert!(both.iter().all(|id| said.contains(id)), "{said}");
    }
}
