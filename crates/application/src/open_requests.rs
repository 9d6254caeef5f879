//! The open permission requests of all agents, as far as they are saved. Nothing of this is stored: the requests are in
//! the journals, and an adopted run reads them again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokenrail_domain::{Accepts, AgentId, JsonText, PermissionOption, PermissionRequest, Timestamp, cut};

/// An open permission request, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRequest {
    pub agent: AgentId,
    pub request_id: String,
    pub call: Option<String>,
    /// The name of the tool, or its beginning.
    pub tool: String,
    /// `None` if the input is too long for a list.
    pub input: Option<JsonText>,
    pub options: Vec<PermissionOption>,
    pub accepts: Accepts,
    pub asked_at: Timestamp,
    /// When the request is settled without an answer. `None` if unknown.
    pub expires_at: Option<Timestamp>,
    /// The option that is chosen then. `None` if none is, or if that is unknown.
    pub default_option: Option<String>,
}

/// The place of a permission request among all open ones: the oldest comes first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestPlace {
    pub asked_at: Timestamp,
    pub agent: AgentId,
    pub request_id: String,
}

/// What an agent needs from a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// The number of its open permission requests.
    pub open_questions: usize,
    /// When the oldest of them was sent. `None` if there are none.
    pub waiting_since: Option<Timestamp>,
}

/// A change of the open permission requests of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestChange {
    Asked { request: Box<PermissionRequest>, asked_at: Timestamp },
    Settled { request_id: String },
}

impl RequestChange {
    /// Whether it opens the request with this id.
    pub(crate) fn opens(&self, id: &str) -> bool {
        matches!(self, Self::Asked { request, .. } if request.id == id)
    }
}

/// The open permission requests of all agents, as far as they are saved.
#[derive(Debug)]
pub(crate) struct OpenRequests {
    /// Those of each agent, by id. None of the maps is empty.
    agents: Mutex<BTreeMap<AgentId, BTreeMap<String, Arc<OpenRequest>>>>,
    /// The longest text or input that is kept.
    field_bytes: usize,
}

impl OpenRequests {
    pub(crate) fn new(field_bytes: usize) -> Self {
        Self { agents: Mutex::default(), field_bytes }
    }

    pub(crate) fn needs(&self, agent: AgentId) -> Needs {
        match self.agents().get(&agent) {
            Some(open) => Needs {
                open_questions: open.len(),
                waiting_since: open.values().map(|request| request.asked_at).min(),
            },
            None => Needs::default(),
        }
    }

    /// Applies changes that are saved. Returns whether other requests are open than before.
    pub(crate) fn apply(&self, agent: AgentId, changes: Vec<RequestChange>) -> bool {
        if changes.is_empty() {
            return false;
        }
        let mut agents = self.agents();
        let open = agents.entry(agent).or_default();
        let before: Vec<String> = open.keys().cloned().collect();
        for change in changes {
            match change {
                RequestChange::Asked { request, asked_at } => {
                    let open_request = OpenRequest::new(agent, *request, asked_at, self.field_bytes);
                    open.insert(open_request.request_id.clone(), Arc::new(open_request));
                }
                RequestChange::Settled { request_id } => {
                    open.remove(&request_id);
                }
            }
        }
        let has_changed = !open.keys().eq(&before);
        if open.is_empty() {
            agents.remove(&agent);
        }
        has_changed
    }

    /// Removes all requests of an agent whose run has ended. Returns whether there were any.
    pub(crate) fn clear(&self, agent: AgentId) -> bool {
        self.agents().remove(&agent).is_some()
    }

    /// The open requests of all agents, from the oldest to the newest, after this place.
    pub(crate) fn after(&self, place: Option<&RequestPlace>) -> Vec<Arc<OpenRequest>> {
        let agents = self.agents();
        let all = agents.values().flat_map(BTreeMap::values);
        let later = |request: &&Arc<OpenRequest>| place.is_none_or(|place| *place < request.place());
        let mut open: Vec<_> = all.filter(later).cloned().collect();
        open.sort_by_cached_key(|request| request.place());
        open
    }

    fn agents(&self) -> MutexGuard<'_, BTreeMap<AgentId, BTreeMap<String, Arc<OpenRequest>>>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenRequest {
    /// Cuts the name of the tool, and leaves out the input, if they are longer than `field_bytes`.
    fn new(agent: AgentId, request: PermissionRequest, asked_at: Timestamp, field_bytes: usize) -> Self {
        let PermissionRequest {
            id: request_id,
            call,
            mut tool,
            input,
            options,
            accepts,
            asked_at: _,
            expires_at,
            default_option,
        } = request;
        cut(&mut tool, field_bytes);
        let input = Some(input).filter(|input| input.as_str().len() <= field_bytes);
        Self { agent, request_id, call, tool, input, options, accepts, asked_at, expires_at, default_option }
    }

    pub fn place(&self) -> RequestPlace {
        RequestPlace { asked_at: self.asked_at, agent: self.agent, request_id: self.request_id.clone() }
    }

    /// The approximate size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let options = self.options.iter().map(|option| option.id.len() + option.name.len());
        let input = self.input.as_ref().map_or(0, |input| input.as_str().len());
        size_of::<Self>() + self.request_id.len() + self.tool.len() + input + options.sum::<usize>()
    }
}
