//! The output of the agents: Claude Code's lines, and whatever else they print.

use tokenrail_domain::TurnOutcome;
use tokenrail_ports::TurnOrder;

use crate::dice::Dice;
use crate::faults::{Cut, Faults, Quirk};
use crate::process::{Hang, NEVER, Piece, Script, WhenStopped};
use crate::questions::Asked;

/// Texts of deltas: the inside of a JSON string.
const WORDS: [&str; 8] = ["tok", " and", "\\n", "\\ud83d", "\\ude00", "é", "\\\"", "<b>"];
/// Longer than the framer's limit for a line.
const LONG_LINE_BYTES: usize = 5000;
const STALL_MS: u64 = 45_000;
/// Longer than any limit of the server for a silent agent.
const TOO_LONG_MS: u64 = 90_000;

/// Writes the output of one run.
pub(crate) struct Author<'a> {
    faults: &'a Faults,
    dice: Dice,
    pieces: Vec<Piece>,
    now: u64,
    quirks: Vec<Quirk>,
    results: u64,
    outcomes: Vec<TurnOutcome>,
    /// Its end cannot be predicted.
    open_end: bool,
    hang: Option<Hang>,
    words: u64,
    /// The turn after which its permission requests are named, and how many there were.
    turn: u32,
    questions: u64,
}

impl<'a> Author<'a> {
    pub(crate) fn new(faults: &'a Faults, seed: u64, order: &TurnOrder) -> Self {
        let dice = Dice::of(seed, &order.prompt);
        let has = |quirk: &Quirk| Dice::of(seed, &format!("{} {quirk:?}", order.prompt)).chance(faults.quirk);
        let quirks = faults.quirks.iter().copied().filter(has).collect();
        Self {
            faults,
            dice,
            pieces: Vec::new(),
            now: 0,
            quirks,
            results: 0,
            outcomes: Vec::new(),
            open_end: false,
            hang: None,
            words: 0,
            turn: order.run.0,
            questions: 0,
        }
    }

    fn is(&self, quirk: Quirk) -> bool {
        self.quirks.contains(&quirk)
    }

    /// The whole run.
    pub(crate) fn script(mut self) -> Script {
        let starts = !self.is(Quirk::DiesAtStart);
        if starts {
            self.turn();
        }
        if starts && self.is(Quirk::TurnOfItsOwn) && !self.open_end && 0 < self.results {
            self.turn();
        }
        let hangs = self.is(Quirk::HangAfterResult) || self.now == NEVER;
        let exit_ms = if hangs { NEVER } else { self.now.saturating_add(self.dice.below(20)) };
        if hangs && self.hang.is_none() {
            let closed = self.pieces.last().is_some_and(|piece| piece.closes);
            self.hang = Some(if closed { Hang::AfterResult } else { Hang::Silent });
        }
        let whole = self.pieces.last().is_none_or(|piece| piece.bytes.ends_with(b"\n"));
        if self.is(Quirk::NoLastLineEnd) || !whole {
            // The last line is never complete, so the server never reads it, and nothing can follow it.
            self.hang = self.hang.map(|_| Hang::InLine);
        }
        let failed = self.outcomes.last() != Some(&TurnOutcome::Completed);
        if self.outcomes.is_empty() {
            self.outcomes.push(TurnOutcome::Failed);
        }
        let when_stopped = if self.is(Quirk::IgnoresTerm) {
            WhenStopped::IgnoresTerm
        } else if self.is(Quirk::AnswersInterrupt) {
            WhenStopped::Answers { after_ms: self.dice.below(300) }
        } else {
            WhenStopped::Dies
        };
        self.cut();
        Script {
            exit_ms,
            // The result decides, not the exit code: agents exit with 0 after a failure.
            exit_code: i32::from(failed && self.dice.chance(500)),
            children: if self.is(Quirk::Children) { 2 } else { 0 },
            when_stopped,
            hang: self.hang,
            outcomes: (!self.open_end && !hangs).then_some(self.outcomes),
            pieces: self.pieces,
        }
    }

    fn turn(&mut self) {
        self.line(r#"{"type":"system","subtype":"init","session_id":"s","model":"claude"}"#);
        if self.is(Quirk::ChunkWithoutStart) {
            self.delta(0, "orphan");
        }
        if self.is(Quirk::EndWithoutStart) {
            self.event(r#"{"type":"message_stop"}"#);
        }
        for message in 0..self.dice.between(1, self.faults.messages) {
            if self.now < NEVER {
                self.trouble();
            }
            if self.is(Quirk::Asks) && self.now < NEVER {
                self.question();
            }
            if self.is(Quirk::Tools) && self.now < NEVER {
                self.tool(message);
            }
            if self.now < NEVER {
                self.message(message);
            }
        }
        if self.now < NEVER {
            self.result();
        }
    }

    fn message(&mut self, number: u64) {
        let empty = self.is(Quirk::EmptyMessage) && number == 0;
        let text = |text: &str| {
            format!(
                r#"{{"type":"assistant","message":{{"id":"m{number}","role":"assistant","content":[{{"type":"text","text":"{text}"}}]}},"session_id":"s"}}"#
            )
        };
        if self.is(Quirk::WholeOnly) {
            let whole = text("said at once");
            return self.line(&whole);
        }
        self.event(&format!(
            r#"{{"type":"message_start","message":{{"id":"m{number}","role":"assistant"}}}}"#
        ));
        self.event(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#);
        let deltas = if empty { 0 } else { self.dice.between(1, self.faults.deltas) };
        let mut whole = String::new();
        for said in 0..deltas {
            if said == 1 && self.is(Quirk::Retry) {
                self.line(r#"{"type":"system","subtype":"api_retry","attempt":1,"session_id":"s"}"#);
                whole.clear();
            }
            if said == deltas / 2 && self.is(Quirk::Stall) {
                self.now += STALL_MS;
            }
            if said == deltas / 2 && self.is(Quirk::HangInMessage) {
                (self.now, self.open_end) = (NEVER, true);
                // A message is open only after its first delta, and no longer once the delta was taken back.
                let open = 0 < said && !(said == 1 && self.is(Quirk::Retry));
                self.hang = Some(if open { Hang::InMessage } else { Hang::Silent });
                return;
            }
            let word = self.word();
            whole.push_str(&word);
            self.delta(0, &word);
        }
        let whole = text(&whole);
        self.line(&whole);
        self.event(r#"{"type":"content_block_stop","index":0}"#);
        self.event(
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}"#,
        );
        self.event(r#"{"type":"message_stop"}"#);
    }

    fn tool(&mut self, number: u64) {
        self.event(&format!(
            r#"{{"type":"message_start","message":{{"id":"t{number}","role":"assistant"}}}}"#
        ));
        self.event(&format!(
            r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","id":"c{number}","name":"Bash","input":{{}}}}}}"#
        ));
        for fragment in [r#"{\"command\":"#, r#" \"ls\"}"#] {
            self.event(&format!(
                r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{fragment}"}}}}"#
            ));
        }
        self.line(&format!(
            r#"{{"type":"assistant","message":{{"id":"t{number}","role":"assistant","content":[{{"type":"tool_use","id":"c{number}","name":"Bash","input":{{"command":"ls"}}}}]}},"session_id":"s"}}"#
        ));
        self.event(r#"{"type":"content_block_stop","index":0}"#);
        self.event(r#"{"type":"message_stop"}"#);
        if self.is(Quirk::HangInTool) {
            (self.now, self.open_end, self.hang) = (NEVER, true, Some(Hang::InTool));
            return;
        }
        // A tool may be silent for longer than an agent.
        self.now += self.dice.pick(&[0, 10, TOO_LONG_MS]);
        self.line(&format!(
            r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"c{number}","type":"tool_result","content":"out","is_error":false}}]}},"session_id":"s"}}"#
        ));
    }

    /// Output that is malformed or unknown.
    fn trouble(&mut self) {
        if self.is(Quirk::Garbage) {
            self.line("npm warn: this is no JSON");
            self.line(r#"{"type":"system","subtype":"thinking_tokens","session_id":"s"}"#);
            self.line(r#"{"type":"never_heard_of","a":[1,2,{"b":null}]}"#);
        }
        if self.is(Quirk::InvalidUtf8) {
            self.bytes(b"\xff\xfe\x00 \xc3\x28 {\n");
        }
        if self.is(Quirk::LongLine) {
            self.line(&format!(r#"{{"type":"{}"}}"#, "x".repeat(LONG_LINE_BYTES)));
        }
        if self.is(Quirk::Flood) {
            let (pace, words) = (self.now, self.dice.between(50, 150));
            for _ in 0..words {
                self.delta(0, "flood ");
                self.now = pace;
            }
        }
    }

    /// Sends one or more permission requests. It may continue meanwhile.
    fn question(&mut self) {
        for _ in 0..self.dice.between(1, 3) {
            self.questions += 1;
            let asked = Asked::draw(format!("{}-{}", self.turn, self.questions), &mut self.dice);
            let line = asked.line();
            self.line(&line);
            // The time that passes if nobody answers.
            self.now += if asked.waits { asked.patience_ms } else { 0 };
            if let Some(last) = self.pieces.last_mut() {
                last.asks = Some(asked);
            }
        }
    }

    fn result(&mut self) {
        if self.is(Quirk::NoResult) {
            self.outcomes.push(TurnOutcome::Failed);
            return;
        }
        if self.is(Quirk::HalfResult) {
            self.bytes(br#"{"type":"result","subtype":"succ"#);
            self.outcomes.push(TurnOutcome::Failed);
            return;
        }
        let times = if self.is(Quirk::ResultTwice) { 2 } else { 1 };
        for _ in 0..times {
            let error = self.is(Quirk::ErrorResult);
            self.line(if error {
                r#"{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"s"}"#
            } else {
                r#"{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s"}"#
            });
            if let Some(last) = self.pieces.last_mut() {
                last.closes = true;
            }
            self.results += 1;
            self.outcomes.push(if error { TurnOutcome::Failed } else { TurnOutcome::Completed });
        }
    }

    fn word(&mut self) -> String {
        self.words += 1;
        format!("{}{} ", self.dice.pick(&WORDS), self.words)
    }

    fn delta(&mut self, index: u64, text: &str) {
        self.event(&format!(
            r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"text_delta","text":"{text}"}}}}"#
        ));
    }

    fn event(&mut self, event: &str) {
        self.line(&format!(
            r#"{{"type":"stream_event","event":{event},"session_id":"s","parent_tool_use_id":null}}"#
        ));
    }

    fn line(&mut self, line: &str) {
        let end = if self.is(Quirk::CrLf) { "\r\n" } else { "\n" };
        self.bytes(format!("{line}{end}").as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if self.now == NEVER {
            return;
        }
        self.pieces.push(Piece { at_ms: self.now, bytes: bytes.to_vec(), asks: None, closes: false });
        self.now += self.dice.below(self.faults.pace_ms + 1);
    }

    /// Cuts the output into the pieces that reach the spool.
    fn cut(&mut self) {
        if self.is(Quirk::NoLastLineEnd)
            && let Some(last) = self.pieces.last_mut()
        {
            last.bytes.pop();
        }
        let pieces = std::mem::take(&mut self.pieces);
        match self.faults.cut {
            Cut::Lines => self.pieces = pieces,
            Cut::Burst => {
                self.pieces = pieces
                    .into_iter()
                    .map(|piece| Piece { at_ms: piece.at_ms / 500 * 500, ..piece })
                    .collect();
            }
            Cut::Pieces | Cut::EveryByte => {
                for Piece { at_ms, bytes, asks, closes } in pieces {
                    let mut rest = &bytes[..];
                    while !rest.is_empty() {
                        let most = if self.faults.cut == Cut::EveryByte { 1 } else { rest.len() as u64 };
                        let (piece, after) = rest.split_at(self.dice.between(1, most) as usize);
                        let asks = asks.clone().filter(|_| after.is_empty());
                        let (bytes, closes) = (piece.to_vec(), closes && after.is_empty());
                        self.pieces.push(Piece { at_ms, bytes, asks, closes });
                        rest = after;
                    }
                }
            }
        }
    }
}
