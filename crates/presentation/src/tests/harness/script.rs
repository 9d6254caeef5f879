//! An agent that does what its prompt says.

use std::sync::Arc;

use async_trait::async_trait;
use tokenrail_domain::{
    Accepts, EventBody, JsonText, MessageOrdinal, MessageOutcome, Notice, Part, PermissionOption,
    PermissionReply, PermissionRequest, Said, Timestamp, TurnClose,
};
use tokenrail_ports::{
    Activity, Adoption, IAgentRun, IAgentRunner, IMessageParser, Line, OutputLine, PermissionAnswer, Probe,
    RunEnd, RunOutput, RunnerError, TurnOrder,
};
use tokio::sync::{Notify, Semaphore};
use tokio::time::Duration;

use super::NOW;
use crate::tests::journals::{LONG, events, written};

/// The notice of a request as agents send it.
const WHOLE_REQUEST: &str = r#"{"requestId":"1-1","toolName":"Write","input":{},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"}]}"#;

/// A request of which one option rejects, as the journal has it.
const MANY_REQUESTS: &str = r#"{"requestId":"ID","toolName":"Write","input":{},"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}],"accepts":{"note":true,"text":true}}"#;

/// Does what the prompt says. `say WORDS`: prints a message word by word. `ask`: sends a permission request and waits
/// for the answer. `ask in vain`: never uses the answer. `ask and say WORDS`: prints words meanwhile. `asks 2 ...`:
/// sends so many requests that accept notes, and uses each answer when it comes; with `in vain`, it never uses any, and
/// with `and say WORDS`, it prints words meanwhile. `hang`: does nothing until it is cancelled. Of `say WORDS again
/// WORDS`, the first words are abandoned. The last words of `say WORDS alone WORDS` are a turn that the agent begins by
/// itself. `tell`: prints the events of the long turn, one in each millisecond; `tell by hand`: one for each permit.
pub(super) struct ScriptRunner {
    pub(super) permits: Arc<Semaphore>,
}

/// How an agent prints its lines.
enum Pace {
    AtOnce,
    ByClock,
    ByHand(Arc<Semaphore>),
}

struct ScriptRun {
    lines: Vec<String>,
    hang: bool,
    /// It prints only its first line until it has an answer.
    asks: bool,
    /// How many requests of `asks` are open.
    open: usize,
    /// Their answers.
    taken: Vec<String>,
    offset: u64,
    pace: Pace,
    answered: Notify,
}

#[async_trait]
impl IAgentRunner for ScriptRunner {
    async fn start(&self, order: &TurnOrder) -> Result<Box<dyn IAgentRun>, RunnerError> {
        let lines = order.prompt.split(' ').skip(1).flat_map(|word| match word {
            "again" => vec!["-".to_owned()],
            "alone" => [".", "end", "own"].map(str::to_owned).to_vec(),
            word => vec![format!("+{word}")],
        });
        let mut lines: Vec<String> = lines.collect();
        lines.extend([".".to_owned(), "end".to_owned()]);
        let hang = order.prompt == "hang" || order.prompt.starts_with("hang ");
        let many = order.prompt.strip_prefix("asks ");
        let open = many.map_or(0, |rest| rest[..1].parse().unwrap());
        let asks = many.is_none() && order.prompt.starts_with("ask");
        if hang || asks {
            lines.clear();
        }
        if asks {
            let extras = if order.prompt == "ask freely" { " +" } else { "" };
            lines.push(format!("?1-1 yes no{extras}"));
        }
        if let Some(words) = order.prompt.strip_prefix("ask and say ") {
            lines = vec!["*1-1 yes no".to_owned()];
            lines.extend(words.split(' ').map(|word| format!("+{word}")));
        }
        if let Some(rest) = many {
            let words = rest.split_once(" and say ").map_or("", |(_, words)| words);
            let kind = if rest.contains("must") { '~' } else { '#' };
            lines = (1..=open).map(|number| format!("{kind}1-{number}")).collect();
            lines.extend(words.split_whitespace().map(|word| format!("+{word}")));
        }
        let pace = match order.prompt.as_str() {
            "tell" => Pace::ByClock,
            "tell by hand" => Pace::ByHand(Arc::clone(&self.permits)),
            _ => Pace::AtOnce,
        };
        if !matches!(pace, Pace::AtOnce) {
            lines = (0..told().len()).map(|at| format!("@{at}")).chain(["end".to_owned()]).collect();
        }
        let answered = Notify::new();
        Ok(Box::new(ScriptRun {
            lines,
            hang: hang || order.prompt.ends_with(" in vain"),
            asks,
            open,
            taken: Vec::new(),
            offset: 0,
            pace,
            answered,
        }))
    }

    async fn adopt(&self, _: &TurnOrder, _: u64) -> Result<Adoption, RunnerError> {
        Ok(Adoption::Gone)
    }

    async fn probe(&self) -> Probe {
        Probe {
            program: Some("/bin/script".into()),
            version: Some("1.0".into()),
            problem: None,
            unset_keys: vec!["SCRIPT_API_KEY".into()],
        }
    }
}

#[async_trait]
impl IAgentRun for ScriptRun {
    async fn next(&mut self) -> Result<RunOutput, RunnerError> {
        if self.hang && self.lines.is_empty() {
            std::future::pending::<()>().await;
        }
        if self.asks && self.lines.is_empty() {
            self.answered.notified().await;
            self.asks = false;
            self.lines.extend(["!1-1 yes".to_owned(), "end".to_owned()]);
        }
        if 0 < self.open && self.lines.is_empty() {
            self.answered.notified().await;
            self.open -= self.taken.len();
            self.lines.append(&mut self.taken);
            self.lines.extend((self.open == 0).then(|| "end".to_owned()));
        }
        if self.lines.is_empty() {
            return Ok(RunOutput::Ended(RunEnd::default()));
        }
        let line = |text: String| {
            self.offset += 1;
            OutputLine { line: Line::Whole(text.into()), end_offset: self.offset }
        };
        let printed = match &self.pace {
            Pace::AtOnce => self.lines.len(),
            Pace::ByClock => {
                tokio::time::sleep(Duration::from_millis(1)).await;
                1
            }
            Pace::ByHand(permits) => {
                permits.acquire().await.unwrap().forget();
                1
            }
        };
        Ok(RunOutput::Lines(self.lines.drain(..printed).map(line).collect()))
    }

    async fn cancel(&mut self) -> Result<(), RunnerError> {
        (self.hang, self.asks, self.open) = (false, false, 0);
        Ok(())
    }

    async fn answer(&mut self, answer: &PermissionAnswer) -> Result<(), RunnerError> {
        let option = answer.reply.first_option().unwrap_or("none");
        self.taken.push(format!("={} {option}", answer.request_id));
        self.answered.notify_one();
        Ok(())
    }

    async fn leave(&mut self) {}
}

#[derive(Default)]
pub(super) struct ScriptParser {
    message: MessageOrdinal,
}

impl IMessageParser for ScriptParser {
    fn parse(&mut self, line: &[u8], said: &mut Vec<Said>) {
        let message = self.message;
        let next = match line {
            b"." => {
                self.message = MessageOrdinal(message.0 + 1);
                Said::End { message, outcome: MessageOutcome::Complete, rest: Vec::new() }
            }
            b"-" => {
                self.message = MessageOrdinal(message.0 + 1);
                Said::Event(EventBody::Abandoned { message })
            }
            [b'@', at @ ..] => {
                let at: usize = str::from_utf8(at).unwrap().parse().unwrap();
                Said::Event(told().swap_remove(at))
            }
            b"own" => {
                self.message = MessageOrdinal(0);
                Said::OwnTurn
            }
            b"end" => Said::Close(Box::new(TurnClose { text: "done".into(), ..TurnClose::default() })),
            [kind @ (b'?' | b'*'), question @ ..] => {
                let mut words = String::from_utf8_lossy(question).into_owned();
                let options = words.split_off(words.find(' ').unwrap());
                let data =
                    if *kind == b'*' { WHOLE_REQUEST } else { r#"{"requestId":"1-1","toolName":"Write"}"# };
                said.push(about_question(Notice::PERMISSION_REQUEST, data));
                Said::Asked(Box::new(request(words, &options)))
            }
            [kind @ (b'#' | b'~'), question @ ..] => {
                let id = String::from_utf8_lossy(question).into_owned();
                let second = if *kind == b'#' { "reject_once" } else { "allow_once" };
                let data = MANY_REQUESTS.replace("ID", &id).replace("reject_once", second);
                said.push(about_question(Notice::PERMISSION_REQUEST, &data));
                Said::Asked(Box::new(one_of_many(id, second)))
            }
            [b'=', question @ ..] => {
                let words = String::from_utf8_lossy(question).into_owned();
                let (id, option) = words.split_once(' ').unwrap();
                let data = format!(r#"{{"requestId":"{id}","optionId":"{option}","by":"user"}}"#);
                said.push(about_question(Notice::PERMISSION_RESOLVED, &data));
                let reply = PermissionReply::of(Some(option.to_owned()));
                Said::Settled { request_id: id.to_owned(), reply }
            }
            [b'!', question @ ..] => {
                let words = String::from_utf8_lossy(question).into_owned();
                let (question, option) = words.split_once(' ').unwrap();
                said.push(about_question(
                    Notice::PERMISSION_RESOLVED,
                    r#"{"requestId":"1-1","optionId":"yes","by":"user"}"#,
                ));
                Said::Settled {
                    request_id: question.to_owned(),
                    reply: PermissionReply::of(Some(option.to_owned())),
                }
            }
            word => {
                let text = String::from_utf8_lossy(&word[1..]).into_owned();
                Said::Event(EventBody::TextDelta { message, part: Part(0), text })
            }
        };
        said.push(next);
    }

    fn activity(&self) -> Activity {
        Activity::default()
    }
}

/// The events of the long turn, as those of an agent's first turn.
fn told() -> Vec<EventBody> {
    let (_, appends) = written(LONG.1);
    let bodies = events(&appends).into_iter().map(|event| event.body);
    bodies.filter(|body| !matches!(body, EventBody::UserMessage { .. } | EventBody::TurnResult(_))).collect()
}

/// A request that expires a minute after the harness's time.
fn request(id: String, options: &str) -> PermissionRequest {
    let option = |id: &str| PermissionOption { id: id.to_owned(), name: id.to_owned(), kind: "allow_once" };
    PermissionRequest {
        id,
        call: None,
        tool: "Write".to_owned(),
        input: JsonText::new_unchecked(r#"{"file_path":"a.txt"}"#),
        options: options.split_whitespace().filter(|option| *option != "+").map(option).collect(),
        accepts: Accepts { note: options.ends_with('+'), text: options.ends_with('+'), several: false },
        asked_at: None,
        expires_at: Some(Timestamp(NOW.0 + 60_000)),
        default_option: Some("no".to_owned()),
    }
}

fn one_of_many(id: String, second: &'static str) -> PermissionRequest {
    let mut request = request(id, " yes no +");
    request.options[1].kind = second;
    request
}

fn about_question(subtype: &str, data: &str) -> Said {
    let data = JsonText::new_unchecked(data);
    Said::Event(EventBody::Notice(Box::new(Notice { subtype: subtype.to_owned(), data })))
}
