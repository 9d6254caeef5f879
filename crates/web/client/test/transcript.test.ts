import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { AgentEvent } from "../src/frames.js";
import { type AssistantMessage, type Item, type ToolCall, type Transcript, applyEvents, emptyTranscript, messagesOf, reduceMessages, textOf } from "../src/transcript/index.js";
import { ANSWERS, Journal, folded } from "./journal.js";

const demo = JSON.parse(readFileSync(new URL("fixtures/demo.json", import.meta.url), "utf8")) as AgentEvent[];

const of = (journal: Journal) => applyEvents(emptyTranscript, journal.events);
const kinds = (transcript: Transcript) => messagesOf(transcript).map((message) => message.kind);
const message = (transcript: Transcript, at: number) => messagesOf(transcript)[at] as AssistantMessage;

function calls(items: readonly Item[]): ToolCall[] {
  return items.flatMap((item) => {
    if (item.kind === "tool") return [item.call];
    return item.kind === "assistant" ? item.parts.flatMap((part) => (part.type === "tool" ? [part.call] : [])) : [];
  });
}

describe("a question", () => {
  it("has what it accepts and the whole answer", () => {
    const journal = new Journal();
    journal.user("go");
    journal.ask("1-1", undefined, { accepts: { text: true, several: true } });
    journal.ask("1-2");
    expect(messagesOf(of(journal))[1]).toMatchObject({ accepts: { text: true, several: true }, optionIds: [], text: undefined });
    expect(messagesOf(of(journal))[2]).toMatchObject({ accepts: {} });
    journal.settle("1-1", { optionId: "y", optionIds: ["y", "n"], text: "and more", by: "user" });
    journal.settle("1-2", { optionId: "n", note: "because", by: "user" });
    const [, first, second] = messagesOf(of(journal));
    expect(first).toMatchObject({ optionId: "y", optionIds: ["y", "n"], text: "and more", note: undefined });
    expect(first && textOf(first)).toBe("");
    expect(second).toMatchObject({ optionId: "n", optionIds: ["n"], text: undefined, note: "because" });
  });
  it("is open until it is settled", () => {
    const journal = new Journal();
    journal.user("go");
    journal.ask("1-1");
    const open = messagesOf(of(journal))[1];
    expect(open).toMatchObject({ kind: "question", state: "open", settledAt: undefined, toolName: "Bash", input: { command: "ls" }, options: ANSWERS, expiresAt: "later", defaultOptionId: "n" });
    journal.settle("1-2", { optionId: "y", by: "user" });
    expect(messagesOf(of(journal))[1]).toEqual(open);
    journal.settle("1-1", { optionId: "y", by: "user" });
    const settledAt = journal.events.at(-1)?.createdAt;
    const settled = { kind: "question", state: "resolved", settledAt, optionId: "y", by: "user", sequence: 2 };
    expect(messagesOf(of(journal))).toHaveLength(2);
    expect(messagesOf(of(journal))[1]).toMatchObject(settled);
    const steps = journal.events.reduce(reduceMessages, undefined);
    expect(messagesOf(steps ?? emptyTranscript)[1]).toMatchObject(settled);
  });

  it("is closed with its turn, and asked again in another", () => {
    const journal = new Journal();
    journal.ask("1-1");
    journal.add("response", "", { eventType: "result", outcome: "failed" });
    journal.ask("2-1");
    expect(messagesOf(of(journal)).map((each) => ("state" in each ? each.state : each.kind))).toEqual(["closed", "result", "open"]);
  });
});

describe("a message", () => {
  it("grows by its deltas, and is replaced by its complete self", () => {
    const journal = new Journal();
    const said = journal.message();
    journal.say(said, "let me think", "reasoning");
    journal.say(said, "Hel");
    journal.say(said, "lo");
    const streaming = message(of(journal), 0);
    expect(streaming).toMatchObject({ id: said.id, state: "streaming", sequence: 1 });
    expect(streaming.parts).toEqual([
      { type: "reasoning", index: 0, text: "let me think" },
      { type: "text", index: 1, text: "Hello" },
    ]);
    journal.complete(said);
    const complete = message(of(journal), 0);
    expect(complete).toMatchObject({ id: said.id, state: "complete", sequence: 1, parts: streaming.parts });
    expect(messagesOf(of(journal))).toHaveLength(1);
  });

  it("vanishes when it is abandoned", () => {
    const journal = new Journal();
    journal.user("hi");
    const first = journal.message();
    journal.say(first, "half a sen");
    journal.abandon(first);
    const second = journal.message();
    journal.say(second, "A whole sentence.");
    journal.complete(second);
    expect(messagesOf(of(journal)).map(textOf)).toEqual(["hi", "A whole sentence."]);
  });

  it("keeps what it says when it fails", () => {
    const journal = new Journal();
    const said = journal.message();
    journal.say(said, "so far");
    journal.complete(said, { outcome: "interrupted" });
    expect(message(of(journal), 0)).toMatchObject({ state: "interrupted", parts: [{ text: "so far" }] });
  });

  it("stands where it began, beside one that began earlier and ended later", () => {
    const journal = new Journal();
    const [first, second] = [journal.message(), journal.message()];
    journal.say(first, "1");
    journal.say(second, "2");
    journal.complete(second);
    journal.complete(first);
    expect(messagesOf(of(journal)).map(textOf)).toEqual(["1", "2"]);
    expect(messagesOf(applyEvents(emptyTranscript, folded(journal.events))).map(textOf)).toEqual(["1", "2"]);
  });
});

describe("a tool call", () => {
  it("is written, called and answered in its place", () => {
    const journal = new Journal();
    const said = journal.message();
    journal.say(said, "Look:");
    const id = journal.call(said, "Read", { file: "a" }, { told: false });
    expect(calls(of(journal).items)).toMatchObject([{ id, name: "Read", state: "preparing", inputText: '{"file":"a"}' }]);
    journal.toolUse(id, "Read", { file: "a" });
    expect(calls(of(journal).items)).toMatchObject([{ id, state: "running", input: { file: "a" } }]);
    journal.complete(said);
    journal.result(id, "alpha");
    expect(calls(of(journal).items)).toMatchObject([{ id, state: "completed", result: "alpha" }]);
    expect(kinds(of(journal))).toEqual(["assistant"]);
  });

  it("has the patch that its result reports", () => {
    const journal = new Journal();
    const patch = "--- /a\n+++ /a\n@@ -3,1 +3,1 @@\n-old\n+new\n";
    journal.toolUse("c", "Edit", { file_path: "/a" });
    expect(calls(of(journal).items)).toMatchObject([{ id: "c", patch: undefined }]);
    journal.add("user", "ok", { eventType: "tool_result", toolCallId: "c", isError: false, patch }, { role: "user" });
    expect(calls(of(journal).items)).toMatchObject([{ id: "c", state: "completed", result: "ok", patch }]);
  });

  it("is joined with a message that comes after it", () => {
    const journal = new Journal();
    const said = journal.message();
    const id = journal.call(said, "Read", {}, { streamed: false });
    expect(kinds(of(journal))).toEqual(["tool"]);
    journal.result(id, "no such file", true);
    journal.complete(said);
    expect(kinds(of(journal))).toEqual(["assistant"]);
    expect(calls(of(journal).items)).toMatchObject([{ id, state: "failed", result: "no such file" }]);
  });

  it("outlives the message that is abandoned, if it was made", () => {
    const journal = new Journal();
    const said = journal.message();
    const made = journal.call(said, "Write", { file: "a" });
    journal.call(said, "Read", {}, { told: false });
    journal.abandon(said);
    expect(calls(of(journal).items)).toMatchObject([{ id: made, name: "Write", state: "running" }]);
  });

  it("without a result is unanswered when its turn ends", () => {
    const journal = new Journal();
    const said = journal.message();
    journal.call(said, "Sleep", {});
    journal.complete(said);
    journal.end();
    expect(calls(of(journal).items)).toMatchObject([{ state: "unanswered" }]);
  });

  it("whose id was used in an earlier turn is a call of its own", () => {
    const journal = new Journal();
    for (const turn of [1, 2]) {
      journal.user("read it", turn);
      const said = journal.message();
      const id = journal.call(said, "Read", { turn }, { id: "again" });
      journal.complete(said);
      journal.result(id, `result ${turn}`);
      journal.end("", turn);
    }
    const transcript = of(journal);
    expect(calls(transcript.items)).toMatchObject([
      { id: "again", input: { turn: 1 }, state: "completed", result: "result 1" },
      { id: "again", input: { turn: 2 }, state: "completed", result: "result 2" },
    ]);
    expect(transcript.items).toEqual(applyEvents(emptyTranscript, folded(journal.events)).items);
  });

  it("of a sub-agent, and all it says, is under the call that started it", () => {
    const journal = new Journal();
    const said = journal.message();
    const task = journal.call(said, "Task", {});
    journal.complete(said);
    const inner = journal.message();
    const read = journal.call(inner, "Read", {}, { streamed: false, parent: task });
    journal.complete(inner, { parent: task });
    journal.result(read, "alpha");
    journal.result(task, "found");
    const transcript = of(journal);
    expect(kinds(transcript)).toEqual(["assistant"]);
    const [call] = calls(transcript.items);
    expect(call).toMatchObject({ id: task, state: "completed", result: "found" });
    expect(calls(call?.children ?? [])).toMatchObject([{ id: read, result: "alpha" }]);
  });

  it("that is void leaves what its sub-agent has said", () => {
    const journal = new Journal();
    const said = journal.message();
    const task = journal.call(said, "Task", {}, { told: false });
    const inner = journal.message();
    journal.say(inner, "found it");
    journal.complete(inner, { parent: task });
    expect(messagesOf(of(journal))).toHaveLength(1);
    journal.abandon(said);
    expect(messagesOf(of(journal)).map(textOf)).toEqual(["found it"]);
  });

  it("that would be inside of itself does no harm", () => {
    const journal = new Journal();
    journal.toolUse("a", "Task", {}, "a");
    journal.toolUse("b", "Task", {}, "a");
    const said = journal.message();
    said.blocks.push({ type: "tool_use", id: "a", name: "Task", input: {} });
    journal.complete(said, { parent: "b" });
    journal.result("a", "done");
    journal.result("b", "done");
    expect(calls(of(journal).items).map((call) => call.state)).toContain("completed");
  });
});

describe("a transcript", () => {
  it("of a recorded session reads as it was", () => {
    const transcript = applyEvents(emptyTranscript, demo);
    expect(transcript.last).toBe(106);
    expect(kinds(transcript)).toEqual(["user", "assistant", "assistant", "assistant", "assistant", "assistant", "result"]);
    expect(calls(transcript.items).map((call) => [call.name, call.state])).toEqual([
      ["Bash", "completed"],
      ["Read", "completed"],
      ["Write", "completed"],
      ["Edit", "completed"],
    ]);
    expect(message(transcript, 1).parts.map((part) => part.type)).toEqual(["reasoning", "text", "tool"]);
    expect(textOf(message(transcript, 5))).toMatch(/^All done\./);
    expect(transcript.items).toEqual(applyEvents(emptyTranscript, folded(demo)).items);
  });

  it("drops what it knows", () => {
    const transcript = applyEvents(emptyTranscript, demo);
    expect(applyEvents(transcript, demo)).toBe(transcript);
  });

  it("keeps what an event does not change", () => {
    const journal = new Journal();
    for (let count = 0; count < 50; count += 1) {
      const said = journal.message();
      journal.say(said, "more");
      journal.complete(said);
    }
    const before = of(journal);
    const said = journal.message();
    journal.say(said, "new");
    const begun = applyEvents(before, journal.events);
    journal.say(said, " words");
    const grown = applyEvents(begun, journal.events);
    expect(messagesOf(grown).slice(0, 50).every((each, at) => each === messagesOf(before)[at])).toBe(true);
    expect(messagesOf(grown)[50]).not.toBe(messagesOf(begun)[50]);
    expect(messagesOf(begun).map(textOf).at(-1)).toBe("new");
  });

  it("can be gone on with from any point, as a scrubber does", () => {
    const all: Transcript[] = [emptyTranscript];
    for (const event of demo) all.push(reduceMessages(all.at(-1) as Transcript, event));
    for (const at of [90, 20, 50]) expect(applyEvents(all[at] as Transcript, demo).items).toEqual(all.at(-1)?.items);
  });

  it("takes an agent's own word for no more than that", () => {
    const journal = new Journal();
    for (const word of ["message", "abandoned", "result", "error", "content_delta", "__proto__"]) journal.notice(word, { a: 1 });
    expect(messagesOf(of(journal))).toEqual([]);
    expect(of(journal).items.every((item) => item.kind === "notice")).toBe(true);
  });

  it("says the last answer once, whether the result repeats it or not", () => {
    const journal = new Journal();
    const say = (...texts: string[]) => {
      const said = journal.message();
      for (const text of texts) journal.say(said, text);
      journal.complete(said);
    };
    const end = (text: string) => journal.add("response", text, { eventType: "result", outcome: "completed" });
    journal.user("one");
    say("first");
    say("the an", "swer\n");
    end("the answer");
    journal.user("two");
    end("the answer");
    journal.user("three");
    journal.add("error", "it broke", { eventType: "error" });
    end("it broke");
    const messages = messagesOf(of(journal));
    expect(messages.map(textOf).filter(Boolean)).toEqual(["one", "first", "the answer\n", "two", "the answer", "three", "it broke"]);
    const results = messages.filter((message) => message.kind === "result");
    expect(results.map(({ text, isRepeated }) => [text, isRepeated])).toEqual([
      ["the answer", true],
      ["the answer", false],
      ["it broke", true],
    ]);
    expect(messagesOf(applyEvents(emptyTranscript, folded(journal.events))).map(textOf)).toEqual(messages.map(textOf));
  });

  it("takes errors and results as they are", () => {
    const journal = new Journal();
    journal.error("The model is overloaded");
    journal.end("bye");
    expect(messagesOf(of(journal))).toMatchObject([
      { kind: "error", text: "The model is overloaded", error: { class: "overloaded" } },
      { kind: "result", text: "bye", outcome: "completed", durationMs: 5 },
    ]);
  });

  it("of a hundred thousand events is made one event at a time", () => {
    const journal = new Journal();
    for (let count = 0; count < 2_000; count += 1) {
      const said = journal.message();
      for (let word = 0; word < 49; word += 1) journal.say(said, "word ");
      journal.complete(said);
    }
    expect(journal.events).toHaveLength(100_000);
    let transcript = emptyTranscript;
    for (const event of journal.events) transcript = reduceMessages(transcript, event);
    expect(messagesOf(transcript)).toHaveLength(2_000);
    expect(textOf(message(transcript, 1_999))).toHaveLength(245);
  });
});
