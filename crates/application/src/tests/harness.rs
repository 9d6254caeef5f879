//! The service over a memory store, a scripted runner, and a parser for a small made-up format.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokenrail_domain::{
    Accepts, AgentError, AgentId, ErrorClass, Event, EventBody, JsonText, MessageOrdinal, MessageOutcome,
    Notice, Part, PermissionOption, PermissionReply, PermissionRequest, Said, Sequence, Timestamp, ToolCall,
    ToolResult, TurnClose,
};
use tokenrail_ports::testing::{
    CountingRandom, MemoryBus, MemoryStore, NotedWorkspace, PretendRepository, ScriptedRunner, Step,
    StoppedClock,
};
use tokenrail_ports::{Abilities, Activity, IMessageParser};
use tokio::runtime::Handle;

use crate::{
    AdmissionLimits, AfterLastTurn, AgentService, AgentType, AgentTypes, Launch, Limits, Next, Outside,
    ReadingLimits, SavingLimits,
};

/// What a test needs of one service.
pub(super) struct Harness {
    pub(super) service: AgentService,
    pub(super) store: Arc<MemoryStore>,
    pub(super) runner: Arc<ScriptedRunner>,
    pub(super) workspace: Arc<NotedWorkspace>,
}

/// Small limits, so that every test reaches them, and not only one under load.
pub(super) fn tiny_limits() -> Limits {
    let Limits { admission, saving, reading, .. } = Limits::default();
    Limits {
        admission: AdmissionLimits { running_agents: 2, queued_launches: 1, queued_turns: 2, ..admission },
        saving: SavingLimits {
            pending_events: 3,
            pending_bytes: 4096,
            retry_pause: Duration::from_millis(1),
            retry_pause_max: Duration::from_millis(4),
            ..saving
        },
        reading: ReadingLimits {
            page_events: 2,
            history_events: 3,
            tail_bytes: 2048,
            tails_bytes: 4096,
            ..reading
        },
        ..Limits::default()
    }
}

pub(super) fn harness(runner: ScriptedRunner) -> Harness {
    let (store, runner) = (Arc::new(MemoryStore::new(7)), Arc::new(runner));
    harness_with(store, runner, tiny_limits())
}

/// A service with an agent whose program hangs in its first turn, with this prompt.
pub(super) async fn hanging(prompt: &str) -> (Harness, AgentId) {
    let h = harness(ScriptedRunner::new([vec![Step::Hang]]));
    let id = h.launch(prompt).await;
    h.wait_for(id, |_| true).await;
    (h, id)
}

#[expect(clippy::large_types_passed_by_value, reason = "tests make their limits where they hand them on")]
pub(super) fn harness_with(store: Arc<MemoryStore>, runner: Arc<ScriptedRunner>, limits: Limits) -> Harness {
    let workspace = Arc::new(NotedWorkspace::default());
    let outside = outside(&store, &runner, &workspace);
    let service = AgentService::new(outside, limits, Handle::current());
    Harness { service, store, runner, workspace }
}

/// The adapters of the service: everything is a fake.
pub(super) fn outside(
    store: &Arc<MemoryStore>,
    runner: &Arc<ScriptedRunner>,
    workspace: &Arc<NotedWorkspace>,
) -> Outside {
    let clock = Arc::new(StoppedClock::at(Timestamp(1_700_000_000_000)));
    let kind = AgentType {
        runner: runner.clone(),
        workspace: workspace.clone(),
        parser: Arc::new(|| Box::new(WordParser::default())),
        runner_name: "scripted".into(),
        abilities: Abilities { images: true, ..Abilities::default() },
        format: "words".into(),
    };
    Outside {
        journal: store.clone(),
        agents: store.clone(),
        archive: store.clone(),
        nodes: store.clone(),
        inbox: store.clone(),
        credentials: None,
        bus: Arc::new(MemoryBus::new(7)),
        clock,
        random: Arc::new(CountingRandom::default()),
        runs: runner.clone(),
        git: Arc::new(PretendRepository::default()),
        types: AgentTypes {
            listed: BTreeMap::from([("scripted".to_owned(), kind.clone())]),
            former: BTreeMap::from([("scripted-before".to_owned(), kind)]),
        },
        default_type: Some("scripted".to_owned()),
    }
}

impl Harness {
    pub(super) async fn launch(&self, prompt: &str) -> AgentId {
        let launch = Launch { prompt: prompt.into(), ..Launch::default() };
        self.service.launch(launch).await.unwrap().agent.id
    }

    /// Follows from the beginning until the agent has ended.
    pub(super) async fn watch(&self, id: AgentId) -> Vec<Event> {
        let (_, mut follower) =
            self.service.follow(id, Some(Sequence::START), AfterLastTurn::End).await.unwrap();
        let mut seen = Vec::new();
        while let Next::Page(page) = follower.next().await.unwrap() {
            seen.extend_from_slice(page.events());
        }
        assert_dense(&seen);
        seen
    }

    /// Waits until the journal holds an event for which `is` returns true.
    pub(super) async fn wait_for(&self, id: AgentId, is: impl Fn(&Event) -> bool) {
        let (_, mut follower) =
            self.service.follow(id, Some(Sequence::START), AfterLastTurn::Wait).await.unwrap();
        while let Next::Page(page) = follower.next().await.unwrap() {
            if page.events().iter().any(&is) {
                return;
            }
        }
        panic!("the stream ended before it came");
    }
}

pub(super) fn assert_dense(events: &[Event]) {
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event.sequence, Sequence(index as u64 + 1), "no hole, no double, in order");
    }
}

/// The events as short words, which tests compare.
pub(super) fn words(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| word(&event.body)).collect()
}

fn word(body: &EventBody) -> String {
    match body {
        EventBody::UserMessage { content, .. } => format!("user {content}"),
        EventBody::TextDelta { text, .. } => format!("+{text}"),
        EventBody::Message(message) => {
            let first = message.first_sequence.map_or(0, |first| first.0);
            format!("message {:?} from {first} {}", message.text(), message.outcome.as_str())
        }
        EventBody::ToolCall(call) => format!("call {}", call.tool),
        EventBody::ToolResult(result) => format!("returns {}", result.content.as_str()),
        EventBody::Notice(notice) => format!("notice {}", notice.subtype),
        EventBody::Abandoned { .. } => "abandoned".to_owned(),
        EventBody::Error(error) => format!("error {}", error.code.as_deref().unwrap_or("-")),
        EventBody::TurnResult(result) => {
            let code = result.error.as_ref().and_then(|error| error.code.as_deref()).unwrap_or("-");
            format!("result {} {code}", result.outcome.as_str())
        }
        other => format!("{other:?}"),
    }
}

/// `ask QUESTION OPTIONS`, or `settle QUESTION OPTION NOTE`. `+` instead of an option: the request accepts everything.
fn question(word: &str, rest: &str, said: &mut Vec<Said>) {
    let mut words = rest.split(' ').map(str::to_owned);
    let question = words.next().unwrap_or_default();
    if word == "ask" {
        said.push(notice(Notice::PERMISSION_REQUEST));
        said.push(Said::Asked(Box::new(request(question, words))));
    } else {
        said.push(notice(Notice::PERMISSION_RESOLVED));
        let reply = PermissionReply::of(words.next());
        said.push(Said::Settled {
            request_id: question,
            reply: PermissionReply { note: words.next(), ..reply },
        });
    }
}

fn close(text: &str) -> Said {
    Said::Close(Box::new(TurnClose { text: text.into(), ..TurnClose::default() }))
}

/// A request that does not say when it was sent.
fn request(id: String, options: impl Iterator<Item = String>) -> PermissionRequest {
    let (extras, options): (Vec<_>, Vec<_>) = options.partition(|option| option == "+");
    let all = !extras.is_empty();
    let kind = |id: &str| if id == "no" { "reject_once" } else { "allow_once" };
    let option = |id: String| PermissionOption { name: id.clone(), kind: kind(&id), id };
    PermissionRequest {
        id,
        call: None,
        tool: "Write".to_owned(),
        input: JsonText::new_unchecked("{}"),
        options: options.into_iter().map(option).collect(),
        accepts: Accepts { note: all, text: all, several: all },
        asked_at: None,
        expires_at: None,
        default_option: None,
    }
}

fn notice(subtype: &str) -> Said {
    let data = JsonText::new_unchecked("{}");
    Said::Event(EventBody::Notice(Box::new(Notice { subtype: subtype.to_owned(), data })))
}

/// Parses `ask QUESTION OPTIONS`, `settle QUESTION OPTION`, `say WORD`, `end`, `tool`, `returned`, `retry`, `close`,
/// `fail`, `next`, `bare`, `twice` and `note`. Any other line displays nothing.
#[derive(Default)]
struct WordParser {
    message: u32,
    open: bool,
    tool_running: bool,
}

impl IMessageParser for WordParser {
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>) {
        let line = String::from_utf8_lossy(line);
        let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let message = MessageOrdinal(self.message);
        let outcome = MessageOutcome::Complete;
        match word {
            "say" => {
                self.open = true;
                let text = rest.to_owned();
                said.push(Said::Event(EventBody::TextDelta { message, part: Part(0), text }));
            }
            "end" => said.push(Said::End { message, outcome, rest: Vec::new() }),
            "retry" => said.push(Said::Event(EventBody::Abandoned { message })),
            "session" => said.push(Said::Session(rest.to_owned())),
            "note" => said.push(notice(rest)),
            "ask" | "settle" => question(word, rest, said),
            "tool" => {
                self.tool_running = true;
                let (call, tool) = ("c".to_owned(), rest.to_owned());
                let input = JsonText::new_unchecked("{}");
                let call = ToolCall { call, tool, input, parent_call: None };
                said.push(Said::Event(EventBody::ToolCall(Box::new(call))));
            }
            "returned" => {
                self.tool_running = false;
                let (call, content) = ("c".to_owned(), JsonText::string(rest));
                let result = ToolResult { call, content, is_error: false, parent_call: None, patch: None };
                said.push(Said::Event(EventBody::ToolResult(Box::new(result))));
            }
            "close" => said.push(close(rest)),
            "fail" => said.push(Said::Close(Box::new(TurnClose {
                error: Some(AgentError {
                    class: ErrorClass::Overloaded,
                    code: None,
                    text: rest.to_owned(),
                    retry_after_ms: None,
                    recoverable: true,
                }),
                ..TurnClose::default()
            }))),
            "bare" => said.push(Said::OwnTurn),
            "twice" => said.extend([Said::OwnTurn, close(rest), Said::OwnTurn, close(rest)]),
            "next" => {
                said.push(Said::OwnTurn);
                said.push(notice("init"));
            }
            _ => {}
        }
        if matches!(word, "end" | "retry") {
            self.message += 1;
            self.open = false;
        }
        if matches!(word, "next" | "bare" | "twice") {
            self.message = 0;
        }
    }

    fn activity(&self) -> Activity {
        Activity { tool_running: self.tool_running, ..Activity::default() }
    }
}
