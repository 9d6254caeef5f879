// Checked by the compiler, `npm run typecheck`: a line that must not compile says so.
import { expectTypeOf, it } from "vitest";
import type { Accepted, Agent, AgentEvent, AgentMessage, AgentNews, Client, Message, NewMessage, Part, TokenrailClient, TokenrailError, ToolCall, Transcript, reduceMessages } from "../src/index.js";
import type { UseAgentMessages, UseAgents } from "../src/react/index.js";

it("calls take and give the server's own types", () => {
  expectTypeOf<Client["launch"]>().parameter(0).toHaveProperty("prompt");
  expectTypeOf<Awaited<ReturnType<Client["launch"]>>>().toEqualTypeOf<Agent>();
  expectTypeOf<Agent["status"]>().toEqualTypeOf<"initializing" | "running" | "completed" | "failed" | "cancelled" | "interrupted">();
  expectTypeOf<Agent["endedAt"]>().toEqualTypeOf<string | undefined>();
  expectTypeOf<Agent["head"]>().toBeNumber();
  // @ts-expect-error a launch needs a prompt
  expectTypeOf<Parameters<Client["launch"]>[0]>().toEqualTypeOf({ type: "demo" });
});

it("the client is a class, and what takes a client takes it", () => {
  expectTypeOf<typeof TokenrailClient>().toBeConstructibleWith({ baseUrl: "http://127.0.0.1:7117", token: "secret" });
  expectTypeOf<TokenrailClient>().toExtend<Client>();
  expectTypeOf<Client["messages"]>().returns.resolves.toEqualTypeOf<AgentMessage[]>();
  expectTypeOf<Client["send"]>().parameter(1).toEqualTypeOf<string | NewMessage>();
  expectTypeOf<Client["send"]>().returns.resolves.toEqualTypeOf<Accepted>();
  expectTypeOf<typeof reduceMessages>().toEqualTypeOf<(state: Transcript | undefined, event: AgentEvent) => Transcript>();
});

it("a loop over events has events", () => {
  type Given<T> = T extends AsyncIterable<infer Each> ? Each : never;
  expectTypeOf<Given<ReturnType<Client["follow"]>>>().toEqualTypeOf<AgentEvent>();
  expectTypeOf<Given<ReturnType<Client["watch"]>>>().toEqualTypeOf<AgentNews>();
  expectTypeOf<Extract<AgentNews, { type: "created" }>["agent"]>().toEqualTypeOf<Agent>();
});

it("messages and parts are told apart by a word", () => {
  expectTypeOf<Extract<Message, { kind: "tool" }>["call"]>().toEqualTypeOf<ToolCall>();
  expectTypeOf<Extract<Message, { kind: "assistant" }>["parts"]>().toEqualTypeOf<readonly Part[]>();
  expectTypeOf<Message["kind"]>().toEqualTypeOf<"user" | "assistant" | "tool" | "question" | "error" | "result">();
  expectTypeOf<Extract<Part, { type: "reasoning" }>["text"]>().toBeString();
});

it("hooks give what they say", () => {
  expectTypeOf<UseAgentMessages["messages"]>().toEqualTypeOf<readonly Message[]>();
  expectTypeOf<UseAgentMessages["error"]>().toEqualTypeOf<TokenrailError | undefined>();
  expectTypeOf<UseAgents["agents"]>().toEqualTypeOf<readonly Agent[]>();
});
