//! Sample turns.

use tokenrail_domain::{
    AgentId, CompleteMessage, ContentBlock, Event, EventBody, MessageOrdinal, MessageOutcome, Part, ToolCall,
    ToolResult, TurnOutcome, TurnResult, Usage,
};
use tokenrail_ports::testing::samples::{self, Scribe};

/// The events of one turn.
pub(super) struct Story {
    pub(super) agent: AgentId,
    pub(super) events: Vec<Event>,
    scribe: Scribe,
}

pub(super) fn all() -> Vec<Story> {
    vec![
        plain_text(),
        thinking_and_tools(),
        parallel_tools(),
        a_sub_agent(),
        a_retry_after_an_abandoned_message(),
        an_error(),
        a_cancel(),
        a_crash(),
        no_partial_messages(),
        a_result_alone(),
        a_result_that_nobody_knows(),
        every_kind_of_event(),
        questions(),
        an_id_used_again_after_its_result(),
    ]
}

pub(super) fn plain_text() -> Story {
    let mut story = Story::begin();
    story.text(0, 0, "Grüße ").text(0, 0, "🦀\n\u{2028}").complete(0).stops("end_turn");
    story.end(samples::result(TurnOutcome::Completed))
}

pub(super) fn thinking_and_tools() -> Story {
    let mut story = Story::begin();
    story.say(samples::notice("init"));
    story.thinks(0, 0, "Let me ").thinks(0, 0, "see.").text(0, 1, "I will look. ");
    story.input(0, 2, "call_1", Some("Bash"), "").input(0, 2, "call_1", None, "{\"command\":");
    story.input(0, 2, "call_1", None, "\"ls\"}").call("call_1", "Bash", r#"{"command":"ls"}"#, None);
    story.complete(0).stops("tool_use").result("call_1", r#""a\nb""#, false);
    story.text(1, 0, "Two files.").complete(1).stops("end_turn");
    story.end(samples::result(TurnOutcome::Completed))
}

pub(super) fn parallel_tools() -> Story {
    let mut story = Story::begin();
    for (part, call) in [(0, "call_1"), (1, "call_2"), (2, "call_3")] {
        story.input(0, part, call, Some("Read"), "{}").call(call, "Read", "{}", None);
    }
    story.complete(0).stops("tool_use");
    story.result("call_3", r#"[{"type":"text","text":"3"}]"#, false).result(
        "call_1",
        r#""no such file""#,
        true,
    );
    story.result("call_2", r#"{"__proto__":1}"#, false);
    story.text(1, 0, "Done.").complete(1).stops("max_tokens");
    story.end(samples::result(TurnOutcome::Completed))
}

pub(super) fn a_sub_agent() -> Story {
    let mut story = Story::begin();
    story.input(0, 0, "task_1", Some("Task"), "{}").call("task_1", "Task", "{}", None).complete(0);
    let blocks = vec![
        ContentBlock::Reasoning("Hm.".into()),
        ContentBlock::Text("I am the other one.".into()),
        tool_use("call_9", r#"{"path":"x"}"#),
    ];
    story.whole(1, blocks, Some("task_1")).call("call_9", "Read", r#"{"path":"x"}"#, Some("task_1"));
    story.result("call_9", r#""content""#, false).result("task_1", r#""it is x""#, false);
    story.text(2, 0, "It is x.").complete(2).stops("end_turn");
    story.end(samples::result(TurnOutcome::Completed))
}

pub(super) fn a_retry_after_an_abandoned_message() -> Story {
    let mut story = Story::begin();
    story.thinks(0, 0, "Wrong ").text(0, 1, "sta");
    story.input(0, 2, "call_1", Some("Bash"), "{\"com");
    story.say(EventBody::Abandoned { message: MessageOrdinal(0) });
    story.text(1, 0, "Right start.").complete(1).stops("end_turn");
    story.end(samples::result(TurnOutcome::Completed))
}

pub(super) fn an_error() -> Story {
    let mut story = Story::begin();
    story.text(0, 0, "I was ").say(EventBody::Error(Box::new(samples::error())));
    story.end(TurnResult { error: Some(samples::error()), ..samples::result(TurnOutcome::Failed) })
}

pub(super) fn a_cancel() -> Story {
    let mut story = Story::begin();
    story.thinks(0, 0, "Hm").text(0, 1, "One ").input(0, 2, "call_1", Some("Bash"), "{\"a\"");
    story.end(samples::result(TurnOutcome::Cancelled))
}

pub(super) fn a_crash() -> Story {
    let mut story = Story::begin();
    story.call("call_1", "Bash", "{}", None).text(0, 0, "cut");
    let nothing = TurnResult { text: String::new(), ..samples::result(TurnOutcome::Interrupted) };
    story.end(TurnResult { cost_usd: None, num_turns: None, usage: None, ..nothing })
}

pub(super) fn no_partial_messages() -> Story {
    let mut story = Story::begin();
    let blocks = vec![
        ContentBlock::Reasoning("Let me see.".into()),
        ContentBlock::Text("I will look.".into()),
        tool_use("call_1", r#"{"path":"x"}"#),
        ContentBlock::Other(samples::json(r#"{"type":"image"}"#)),
    ];
    story.whole(0, blocks, None).call("call_1", "Read", r#"{"path":"x"}"#, None);
    story.result("call_1", r#""content""#, false);
    story.whole(1, vec![ContentBlock::Text("Done.".into())], None);
    story.end(samples::result(TurnOutcome::Completed))
}

pub(super) fn a_result_alone() -> Story {
    Story::begin().end(samples::result(TurnOutcome::Completed))
}

pub(super) fn a_result_that_nobody_knows() -> Story {
    let mut story = Story::begin();
    story.result("call_0", r#""late""#, false).text(0, 0, "Well.").complete(0);
    story.end(samples::result(TurnOutcome::Completed))
}

pub(super) fn every_kind_of_event() -> Story {
    let mut story = Story::begin();
    for body in samples::every_body() {
        story.say(body);
    }
    story.end(samples::result(TurnOutcome::Failed))
}

pub(super) fn questions() -> Story {
    let mut story = Story::begin();
    story.input(0, 0, "call_1", Some("Bash"), "{}").call("call_1", "Bash", "{}", None).complete(0);
    story.asked("q1", Some("call_1")).settled("q1", Some("yes"), "user").result("call_1", r#""made""#, false);
    // The request comes before its call, it is asked again, and the result follows the denial.
    story.asked("q2", Some("call_2")).asked("q3", Some("call_2")).settled("q2", None, "agent");
    story.call("call_2", "Bash", "{}", None).settled("q3", Some("no"), "timeout");
    story.result("call_2", r#""not allowed""#, true);
    // Requests without a call, settled after the result, for a call that has ended, and open until the end.
    story.asked("q4", None).settled("q4", Some("yes"), "user");
    story.asked("q5", Some("call_3")).result("call_3", r#""quick""#, false).settled(
        "q5",
        Some("yes"),
        "user",
    );
    story.asked("q6", Some("call_1")).settled("q6", None, "cancel");
    story.asked("q7", Some("call_4")).settled("q7", None, "user").asked("q8", Some("call_5"));
    story.end(samples::result(TurnOutcome::Completed))
}

pub(super) fn an_id_used_again_after_its_result() -> Story {
    let mut story = Story::begin();
    for (message, output) in [(0, r#""one""#), (1, r#""two""#)] {
        let input = format!(r#"{{"n":{message}}}"#);
        story.whole(message, vec![tool_use("call_1", &input)], None).call("call_1", "Read", &input, None);
        story.result("call_1", output, false);
        // The agent repeats the whole message.
        story.whole(message, vec![tool_use("call_1", &input)], None);
    }
    story.end(samples::result(TurnOutcome::Completed))
}

fn tool_use(call: &str, input: &str) -> ContentBlock {
    ContentBlock::ToolUse { call: call.into(), tool: "Read".into(), input: samples::json(input) }
}

impl Story {
    fn begin() -> Self {
        let (agent, turn) = samples::launch(7);
        let mut scribe = Scribe::new(&agent);
        let events = scribe.start(&turn).events.to_vec();
        Self { agent: agent.id, events, scribe }
    }

    fn say(&mut self, body: EventBody) -> &mut Self {
        self.events.extend(self.scribe.say(vec![body]).events.iter().cloned());
        self
    }

    fn end(mut self, result: TurnResult) -> Self {
        self.events.extend(self.scribe.end_with(result).events.iter().cloned());
        self
    }

    fn text(&mut self, message: u32, part: u32, text: &str) -> &mut Self {
        let (message, part) = (MessageOrdinal(message), Part(part));
        self.say(EventBody::TextDelta { message, part, text: text.into() })
    }

    fn thinks(&mut self, message: u32, part: u32, text: &str) -> &mut Self {
        let (message, part) = (MessageOrdinal(message), Part(part));
        self.say(EventBody::ReasoningDelta { message, part, text: text.into() })
    }

    fn input(
        &mut self,
        message: u32,
        part: u32,
        call: &str,
        tool: Option<&str>,
        fragment: &str,
    ) -> &mut Self {
        let (message, part, tool) = (MessageOrdinal(message), Part(part), tool.map(str::to_owned));
        self.say(EventBody::ToolInputDelta {
            message,
            part,
            call: call.into(),
            tool,
            fragment: fragment.into(),
        })
    }

    fn call(&mut self, call: &str, tool: &str, input: &str, parent: Option<&str>) -> &mut Self {
        let parent_call = parent.map(str::to_owned);
        let call =
            ToolCall { call: call.into(), tool: tool.into(), input: samples::json(input), parent_call };
        self.say(EventBody::ToolCall(Box::new(call)))
    }

    fn result(&mut self, call: &str, content: &str, is_error: bool) -> &mut Self {
        let content = samples::json(content);
        let result = ToolResult { call: call.into(), content, is_error, parent_call: None, patch: None };
        self.say(EventBody::ToolResult(Box::new(result)))
    }

    fn asked(&mut self, question: &str, call: Option<&str>) -> &mut Self {
        self.say(samples::permission_request(question, call))
    }

    fn settled(&mut self, question: &str, option: Option<&str>, by: &str) -> &mut Self {
        self.say(samples::settled(question, option, by))
    }

    fn complete(&mut self, message: u32) -> &mut Self {
        let complete = self.scribe.complete(message);
        self.say(complete)
    }

    fn whole(&mut self, message: u32, blocks: Vec<ContentBlock>, parent: Option<&str>) -> &mut Self {
        self.say(EventBody::Message(Box::new(CompleteMessage {
            message: MessageOrdinal(message),
            blocks,
            first_sequence: None,
            outcome: MessageOutcome::Complete,
            parent_call: parent.map(str::to_owned),
        })))
    }

    fn stops(&mut self, word: &str) -> &mut Self {
        let usage = samples::json(r#"{"output_tokens":3}"#);
        self.say(EventBody::Usage(Box::new(Usage { stop_reason: Some(word.into()), usage })))
    }
}
