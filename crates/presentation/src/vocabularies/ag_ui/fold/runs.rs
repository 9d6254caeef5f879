//! The runs of one turn. A turn is one run, or several if the agent asks for permission.

use tokenrail_domain::{AgentId, Event, EventBody, Timestamp, TurnNumber, event_id};

use super::AgUi;
use super::teller::Teller;
use crate::fold::Frames;
use crate::vocabularies::ag_ui::cursor::ThreadCursor;
use crate::vocabularies::ag_ui::dto::{AgUiEvent, InputDto, ProtocolVersion};

/// What a client wants of a turn.
#[derive(Debug, Clone)]
pub(crate) enum Scope {
    /// All runs, with ids of the server's own.
    Thread,
    /// One run of a client.
    Run(WantedRun),
}

/// The run that a client has asked for: the first one of the turn, or the one after a permission request.
#[derive(Debug, Clone)]
pub(crate) struct WantedRun {
    /// The client's own id.
    pub(crate) id: String,
    pub(crate) after: Option<String>,
    /// Later permission requests that the client has answered too. They do not end what it gets.
    pub(crate) answered: Vec<String>,
    /// Clients from before version 1.0 refuse a run with the outcome `cancelled`.
    pub(crate) is_before_v1: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client has not asked for what comes now.
    Before,
    Open,
    /// The next event opens the next run. Its first event has this place.
    Between(Timestamp, ThreadCursor),
    Over,
}

/// The runs of one turn.
#[derive(Debug)]
pub(super) struct Runs {
    agent: AgentId,
    turn: TurnNumber,
    thread: String,
    scope: Scope,
    phase: Phase,
    /// The permission request that has ended the newest run.
    asked: Option<String>,
    /// The number of the run in the turn, from 0.
    pub(super) number: u32,
    has_begun: bool,
}

impl Runs {
    pub(super) fn new(agent: AgentId, turn: TurnNumber, thread: String, scope: Scope) -> Self {
        Self { agent, turn, thread, scope, phase: Phase::Before, asked: None, number: 0, has_begun: false }
    }

    /// Whether the client has asked for what comes now.
    pub(super) fn is_heard(&self) -> bool {
        matches!(self.phase, Phase::Open | Phase::Between(..))
    }

    /// Whether the client has everything that it asked for.
    pub(super) fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// The permission request that has ended a run, if nothing was sent since.
    pub(super) fn waits_for(&self) -> Option<&str> {
        self.asked.as_deref().filter(|_| matches!(self.phase, Phase::Between(..)))
    }

    /// Whether the client knows the outcome `cancelled`. Others take a run without an outcome for a complete one.
    pub(super) fn knows_cancelled(&self) -> bool {
        !matches!(&self.scope, Scope::Run(run) if run.is_before_v1)
    }

    fn id(&self) -> String {
        match &self.scope {
            Scope::Run(run) => run.id.clone(),
            Scope::Thread if self.number == 0 => format!("run-{}-{}", self.agent, self.turn),
            Scope::Thread => format!("run-{}-{}-{}", self.agent, self.turn, self.number),
        }
    }

    /// Begins the run to which the event belongs, unless it has begun.
    pub(super) fn enter<T: Frames<AgUi>>(&mut self, event: &Event, out: &mut Teller<'_, T>) {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        if self.waits_for().is_some() && matches!(event.body, EventBody::Usage(_)) {
            // The agent tells what the message before the request has used, and still waits.
            return;
        }
        let place = match (self.phase, &self.scope) {
            (Phase::Between(at, cursor), _) => (at, cursor),
            (Phase::Before, Scope::Thread | Scope::Run(WantedRun { after: None, .. })) if is_first => {
                out.reserve()
            }
            _ => return,
        };
        let said = match (&event.body, &self.scope) {
            // Clients know what they have sent themselves.
            (EventBody::UserMessage { content, .. }, Scope::Thread) if is_first => {
                Some((event_id(self.agent, event), content.as_str()))
            }
            _ => None,
        };
        self.open(place, said, out);
    }

    fn open<T: Frames<AgUi>>(
        &mut self,
        place: (Timestamp, ThreadCursor),
        said: Option<(uuid::Uuid, &str)>,
        out: &mut Teller<'_, T>,
    ) {
        (self.phase, out.is_heard) = (Phase::Open, true);
        let (thread_id, run_id) = (self.thread.as_str(), &*self.id());
        let input = said.map(|(id, content)| InputDto::new(thread_id, run_id, id, content));
        out.tell_at(
            place,
            AgUiEvent::RunStarted { thread_id, run_id, protocol_version: ProtocolVersion, input },
        );
    }

    /// Ends the run at a permission request. The next run begins at once for a client that has asked for it, and with
    /// the next event for a client that gets several.
    pub(super) fn interrupt<T: Frames<AgUi>>(
        &mut self,
        request: &str,
        finish: impl FnOnce(&str, &str, &mut Teller<'_, T>),
        out: &mut Teller<'_, T>,
    ) {
        finish(&self.thread, &self.id(), out);
        self.number += 1;
        self.asked = Some(request.to_owned());
        let next = out.reserve();
        match (self.phase, &self.scope) {
            (Phase::Before, Scope::Run(run)) if run.after.as_deref() == Some(request) => {
                self.open(next, None, out);
            }
            (Phase::Open, Scope::Run(run)) if !run.answered.iter().any(|answered| answered == request) => {
                self.phase = Phase::Over;
            }
            (Phase::Open, _) => self.phase = Phase::Between(next.0, next.1),
            _ => {}
        }
        out.is_heard = self.is_heard();
    }

    /// Ends the last run. If the client waits for a run that never began, it gets one that ends at once.
    pub(super) fn end<T: Frames<AgUi>>(
        &mut self,
        finish: impl FnOnce(&str, &str, &mut Teller<'_, T>),
        out: &mut Teller<'_, T>,
    ) {
        let place = out.reserve();
        if self.phase == Phase::Before {
            self.open(place, None, out);
        }
        finish(&self.thread, &self.id(), out);
        self.phase = Phase::Over;
    }
}
