//! A client connects to the namespace: it shows its token, and takes up what it has followed before.

use std::collections::BTreeMap;
use std::net::IpAddr;

use tokenrail_domain::{AgentId, Sequence};

use super::{Session, tagged};
use crate::api::{Api, StreamPlace};
use crate::error::{Code, Problem};
use crate::guard::has_token;
use crate::hex::hex;
use crate::json::fields::Fields;
use crate::vocabularies::native::dto::client::unknown_agent;
use crate::vocabularies::native::dto::socket_io::ConnectedDto;
use crate::vocabularies::native::socket_io::packet::{CONNECTED, ROOT};

/// The part of a session's id that is random, in bytes.
const ID_BYTES: usize = 16;

const TOKEN_MISSING: &str = "send the token: io(url, { auth: { token } }), or the header \"Authorization: Bearer \
                             <token>\"; the command \"tokenrail token\" prints it";

/// The place that a session takes.
pub(crate) enum Place {
    /// Until the client has shown its token.
    Lobby {
        _place: StreamPlace,
    },
    Stream {
        _place: StreamPlace,
    },
}

/// What a client wants when it connects.
struct Wanted {
    /// The last event of each agent that the client has.
    since: Vec<(AgentId, Sequence)>,
    /// The names in `since` that are no ids.
    unknown: usize,
}

/// A new id that nobody can guess.
pub(crate) fn new_id(api: &Api) -> String {
    hex(&api.random()[..ID_BYTES])
}

impl Place {
    /// Takes a place for a client. `known`: its request has shown a token or a session.
    pub(crate) fn take(api: &Api, peer: IpAddr, known: bool) -> Result<Self, Problem> {
        Ok(if known {
            Self::Stream { _place: api.open_stream(peer)? }
        } else {
            Self::Lobby { _place: api.enter_lobby(peer)? }
        })
    }
}

impl Session {
    pub(super) async fn connect(&mut self, auth: Option<&str>) {
        let Wanted { since, unknown } = match self.admit(auth.unwrap_or("{}")) {
            Ok(wanted) => wanted,
            Err(problem) => return self.not_connected(ROOT, &problem),
        };
        self.connect_due = None;
        self.connected.set(true);
        // Not the id of the connection, because clients tell this one to each other.
        let sid = new_id(&self.api);
        self.frames(tagged(CONNECTED, &ConnectedDto { sid: &sid }));
        self.lifecycle = Some(self.api.service().lifecycle_events());
        for _ in 0..unknown {
            self.problem(&unknown_agent(), None);
        }
        for (agent, since) in since {
            match self.follow(agent, since, false, false).await {
                Ok(followed) => self.emit("subscribed", &followed),
                Err(problem) => {
                    self.problem(&problem, Some(agent));
                    self.reconnects_after(&problem);
                    if self.closed {
                        return;
                    }
                }
            }
        }
    }

    /// Checks what the client sends when it connects.
    fn admit(&mut self, auth: &str) -> Result<Wanted, Problem> {
        let config = self.api.config();
        let mut fields = Fields::read(auth.as_bytes(), config.json_depth)?;
        let token: Option<String> = fields.optional("token", "must be a string");
        let since: Option<BTreeMap<String, u64>> =
            fields.optional("since", "must be an object with the last sequence number of each agent id");
        fields.finish()?;
        let since = since.unwrap_or_default();
        if config.subscriptions_per_connection < since.len() {
            let wrong = "has more agents than limits.subscriptions_per_connection; open another connection";
            return Err(Problem::field("since", wrong));
        }
        if matches!(self.place, Place::Lobby { .. }) {
            match token {
                Some(token) if has_token(config, &token) => {}
                Some(_) => return Err(self.api.failed_login(self.peer)),
                None => return Err(Problem::new(Code::Unauthenticated, TOKEN_MISSING)),
            }
            self.place = Place::take(&self.api, self.peer, true)?;
        }
        let names = since.len();
        let known = since.into_iter().filter_map(|(id, last)| Some((id.parse().ok()?, Sequence(last))));
        let since: Vec<_> = known.collect();
        Ok(Wanted { unknown: names - since.len(), since })
    }
}
