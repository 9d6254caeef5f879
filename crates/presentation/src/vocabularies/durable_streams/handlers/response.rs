//! The responses to reads that return JSON.

use actix_web::http::header::{self, HeaderMap};
use actix_web::{HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use ring::digest::{SHA256, digest};

use crate::hex::hex;
use crate::vocabularies::durable_streams::dto::{CLOSED, CURSOR, NEXT_OFFSET, UP_TO_DATE};
use crate::vocabularies::durable_streams::offset::Offset;

/// How much of a hash an entity tag has, in bytes.
const TAG_BYTES: usize = 16;
/// A client that keeps a page must ask each time. More may follow at the end of a stream; and a page in the middle
/// changes if the agent is purged, if its output is parsed again, or if the database loses events in a failover.
const ASK: &str = "private, no-cache";
/// Caches must not give a page to whoever has no access.
const VARY: &str = "Authorization, X-Api-Key, Cookie";

/// Where a response ends in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reached {
    pub(super) next: Offset,
    pub(super) end: ReachedEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReachedEnd {
    /// There are more events now.
    MoreFollows,
    /// These are all events so far.
    UpToDate,
    /// These are all events that there will ever be.
    Closed,
}

impl Reached {
    /// Adds the headers that say so.
    pub(super) fn tell(self, response: &mut HttpResponseBuilder) {
        response.insert_header((NEXT_OFFSET, self.next.to_string()));
        if self.end != ReachedEnd::MoreFollows {
            response.insert_header((UP_TO_DATE, "true"));
        }
        if self.end == ReachedEnd::Closed {
            response.insert_header((CLOSED, "true"));
        }
    }

    /// The entity tag of a page that ends here. It depends on everything in the response that can change.
    fn tag(self, body: &[u8]) -> String {
        let hash = digest(&SHA256, body);
        let end = match self.end {
            ReachedEnd::MoreFollows => "",
            ReachedEnd::UpToDate => "-u",
            ReachedEnd::Closed => "-c",
        };
        format!("\"{}{end}\"", hex(&hash.as_ref()[..TAG_BYTES]))
    }
}

/// A page of history. A client that has it already gets only the headers.
pub(super) fn history_page(headers: &HeaderMap, messages: &[u8], reached: Reached) -> HttpResponse {
    let body = list(messages);
    let tag = reached.tag(&body);
    let has_it = knows(headers, &tag);
    let mut response = if has_it { HttpResponse::NotModified() } else { HttpResponse::Ok() };
    reached.tell(&mut response);
    response.insert_header((header::CACHE_CONTROL, ASK)).insert_header((header::VARY, VARY));
    response.insert_header((header::ETAG, tag));
    if has_it { response.finish() } else { response.content_type("application/json").body(body) }
}

/// What has arrived during a long poll.
pub(super) fn live_page(messages: &[u8], reached: Reached, cursor: u64) -> HttpResponse {
    let body = list(messages);
    let mut response = HttpResponse::Ok();
    reached.tell(&mut response);
    response.insert_header((CURSOR, cursor)).insert_header((header::ETAG, reached.tag(&body)));
    response.content_type("application/json").body(body)
}

/// A long poll without messages.
pub(super) fn nothing_new(reached: Reached, cursor: u64) -> HttpResponse {
    let mut response = HttpResponse::NoContent();
    reached.tell(&mut response);
    response.insert_header((CURSOR, cursor)).finish()
}

fn list(messages: &[u8]) -> Bytes {
    [b"[", messages, b"]"].concat().into()
}

/// Whether the client has the response with this entity tag.
fn knows(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get_all(header::IF_NONE_MATCH).filter_map(|value| value.to_str().ok());
    let mut tags = known.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}
