//! The open permission requests, as the server lists them: those of all agents, and those of one.

use reqwest::header::LINK;
use reqwest::{Response, Url};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Failure;
use super::client::Client;
use super::permission_request::ShownRequest;

/// How many pages are read.
const PAGES_MAX: usize = 1000;

/// An open permission request of any agent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedRequest {
    pub(crate) agent_id: String,
    #[serde(flatten)]
    pub(crate) asked: ShownRequest,
}

/// The list of the open requests of all agents, the oldest first, page by page.
pub(crate) struct Pages<'a> {
    client: &'a Client,
    /// The parameters of the next page. `None` after the last one.
    next: Option<Vec<(String, String)>>,
    read: usize,
}

impl<'a> Pages<'a> {
    pub(crate) fn of(client: &'a Client) -> Self {
        Self { client, next: Some(Vec::new()), read: 0 }
    }

    /// The next page. `None` if there are no more.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Box<RawValue>>>, Failure> {
        let Some(query) = self.next.take().filter(|_| self.read < PAGES_MAX) else { return Ok(None) };
        self.read += 1;
        let pairs: Vec<(&str, &str)> = query.iter().map(|(key, value)| (&**key, &**value)).collect();
        let answer = self.client.get(&["api", "questions"], &pairs).await?;
        self.next = next_page(&answer);
        Ok(Some(answer.json().await?))
    }
}

/// The open requests of one agent, the oldest first.
///
/// # Errors
/// As [`Client::get`].
pub(crate) async fn of_agent(client: &Client, id: &str) -> Result<Vec<ShownRequest>, Failure> {
    let (mut pages, mut open) = (Pages::of(client), Vec::new());
    while let Some(page) = pages.next().await? {
        for request in page {
            let ListedRequest { agent_id, asked } = serde_json::from_str(request.get())?;
            if agent_id == id {
                open.push(asked);
            }
        }
    }
    Ok(open)
}

/// The parameters of the next page. `None` after the last one.
fn next_page(answer: &Response) -> Option<Vec<(String, String)>> {
    let link = answer.headers().get(LINK)?.to_str().ok()?;
    let target = link.strip_prefix('<')?.split_once('>')?.0;
    let url = answer.url().join(target).ok().filter(|url: &Url| url.query().is_some())?;
    Some(url.query_pairs().into_owned().collect())
}
