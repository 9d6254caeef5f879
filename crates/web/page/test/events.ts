import type { AgentMessage } from "@tokenrail/client";

const start = Date.parse("2026-11-22T06:42:10.000Z");

/** Events of one agent, as a server tells them: each has the next number, and comes `stepMs` after the one before. */
export class Told {
  readonly events: AgentMessage[] = [];
  readonly #stepMs: number;

  constructor(stepMs = 100) {
    this.#stepMs = stepMs;
  }

  prompt(content: string, more: object = {}): this {
    return this.#tell("user", "user_message", content, { turn: 1, ...more });
  }

  text(messageId: string, content: string): this {
    return this.#tell("assistant", "content_delta", content, { messageId, part: 0 });
  }

  message(messageId: string, content: unknown, more: object = {}): this {
    return this.#tell("assistant", "message", content, { messageId, outcome: "complete", ...more });
  }

  call(toolCallId: string, toolName: string, input: unknown, more: object = {}): this {
    return this.#tell(
      "tool",
      "tool_use",
      { type: "tool_use", id: toolCallId, name: toolName, input },
      { toolCallId, toolName, ...more },
    );
  }

  gave(toolCallId: string, content: unknown, more: object = {}): this {
    return this.#tell("user", "tool_result", content, { toolCallId, isError: false, ...more });
  }

  failed(content: string, error: object): this {
    return this.#tell("error", "error", content, { error });
  }

  asked(requestId: string, toolName: string, input: unknown, options: object[], more: object = {}): this {
    return this.#tell("system", "permission_request", { requestId, toolName, input, options, ...more }, {});
  }

  settled(requestId: string, how: object): this {
    return this.#tell("system", "permission_resolved", { requestId, ...how }, {});
  }

  result(more: object = {}): this {
    return this.#tell("response", "result", "", {
      outcome: "completed",
      turn: 1,
      durationMs: 1234,
      messageCount: 1,
      ...more,
    });
  }

  #tell(type: string, eventType: string, content: unknown, metadata: object): this {
    const sequenceNumber = this.events.length + 1;
    const createdAt = new Date(start + (sequenceNumber - 1) * this.#stepMs).toISOString();
    this.events.push({
      id: `event-${sequenceNumber}`,
      agentId: "agent",
      sequenceNumber,
      type,
      role: "system",
      content,
      metadata: { eventType, ...metadata },
      createdAt,
    } as AgentMessage);
    return this;
  }
}
