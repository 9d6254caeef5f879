//! An agent that sends a permission request of each kind, and ends when all of them are answered.

use std::collections::BTreeSet;

use async_trait::async_trait;
use tokenrail_ports::{
    Adoption, IAgentRun, IAgentRunner, OutputLine, PermissionAnswer, Probe, RunEnd, RunOutput, RunnerError,
    TurnOrder,
};

use super::world::lines_of;

/// The id of a request, its options with the kind of each, and what follows in its line.
type Request = (&'static str, &'static [(&'static str, &'static str)], &'static str);

pub(crate) const REQUESTS: [Request; 5] = [
    ("1-1", &[("yes", "allow_once"), ("always", "allow_always"), ("no", "reject_once")], ""),
    (
        "1-2",
        &[("yes", "allow_always"), ("no", "reject_always")],
        r#","toolCallId":"c","accepts":{"note":true}"#,
    ),
    ("1-3", &[], r#","accepts":{"text":true}"#),
    ("1-4", &[("a", "allow_once"), ("b", "allow_once")], r#","accepts":{"several":true,"note":true}"#),
    ("1-5", &[("no", "reject_once")], ""),
];

const RESULT: &[u8] = b"{\"type\":\"result\",\"subtype\":\"success\"}\n";

pub(crate) struct Asker;

struct Asking {
    output: Vec<u8>,
    /// How many lines were read.
    read: usize,
    open: BTreeSet<String>,
    is_cancelled: bool,
}

#[async_trait]
impl IAgentRunner for Asker {
    async fn start(&self, _: &TurnOrder) -> Result<Box<dyn IAgentRun>, RunnerError> {
        let option =
            |(id, kind): &(&str, &str)| format!(r#"{{"optionId":"{id}","name":"{id}","kind":"{kind}"}}"#);
        let line = |(id, options, rest): Request| {
            let options = options.iter().map(option).collect::<Vec<_>>().join(",");
            let begin = format!(r#"{{"tokenrail":"permission_request","requestId":"{id}","toolName":"Bash""#);
            format!("{begin},\"input\":{{}},\"options\":[{options}]{rest}}}\n")
        };
        let output = REQUESTS.map(line).concat().into_bytes();
        let open = REQUESTS.map(|(id, ..)| id.to_owned()).into();
        Ok(Box::new(Asking { output, read: 0, open, is_cancelled: false }))
    }

    async fn adopt(&self, _: &TurnOrder, _: u64) -> Result<Adoption, RunnerError> {
        Ok(Adoption::Gone)
    }

    async fn probe(&self) -> Probe {
        Probe::default()
    }
}

impl Asking {
    fn lines(&mut self) -> Vec<OutputLine> {
        let new = lines_of(&self.output).split_off(self.read);
        self.read += new.len();
        new
    }
}

#[async_trait]
impl IAgentRun for Asking {
    async fn next(&mut self) -> Result<RunOutput, RunnerError> {
        let lines = self.lines();
        if !lines.is_empty() {
            return Ok(RunOutput::Lines(lines));
        }
        if self.is_cancelled || self.output.ends_with(RESULT) {
            return Ok(RunOutput::Ended(RunEnd::default()));
        }
        if self.open.is_empty() {
            self.output.extend_from_slice(RESULT);
            return Ok(RunOutput::Lines(self.lines()));
        }
        std::future::pending().await
    }

    async fn cancel(&mut self) -> Result<(), RunnerError> {
        self.is_cancelled = true;
        Ok(())
    }

    async fn answer(&mut self, answer: &PermissionAnswer) -> Result<(), RunnerError> {
        let PermissionAnswer { request_id, reply } = answer;
        assert!(self.open.remove(request_id), "{request_id} is answered twice");
        let option = reply.first_option().map(|option| format!(r#""optionId":"{option}","#));
        let option = option.unwrap_or_default();
        let begin = format!(r#"{{"tokenrail":"permission_resolved","requestId":"{request_id}","#);
        self.output.extend_from_slice(format!("{begin}{option}\"by\":\"user\"}}\n").as_bytes());
        Ok(())
    }

    async fn leave(&mut self) {}
}
