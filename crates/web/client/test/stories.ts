// What agents may do, made up: the steps of a story, and the journal that a server would have saved of it.
import fc from "fast-check";
import { Journal, type OpenMessage } from "./journal.js";

const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant("say" as const), on: fc.nat(3), text: fc.string({ maxLength: 6, minLength: 1 }), thinks: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("call" as const), on: fc.nat(3), streamed: fc.boolean(), told: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("answer" as const), on: fc.nat(5), fails: fc.boolean() }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("complete" as const), on: fc.nat(3), under: fc.option(fc.nat(5)) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("abandon" as const), on: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("ask" as const), about: fc.option(fc.nat(5)) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("settle" as const), on: fc.nat(3), by: fc.constantFrom("user", "timeout", "cancel", "agent") }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("user" as const, "notice" as const, "error" as const, "end" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
type Does<Name extends Step["do"]> = Extract<Step, { do: Name }>;

export const steps = fc.array(step, { maxLength: 60 });

/** A journal as the steps say: up to four messages are open at a time, and a step that makes no sense is left out. */
export function journalOf(story: readonly Step[]): Journal {
  const teller = new Teller();
  for (const each of story) teller.tell(each);
  return teller.end();
}

class Teller {
  readonly #journal = new Journal();
  readonly #open: OpenMessage[] = [];
  /** Results, and what sub-agents say, come after a call was told or its message is complete. */
  readonly #calls: string[] = [];
  readonly #inMessage = new Map<OpenMessage, string[]>();
  /** Questions, also those that are settled: an answer may be told twice, or after the end of the turn. */
  readonly #questions: string[] = [];

  tell(step: Step): void {
    switch (step.do) {
      case "say":
        return this.#journal.say(this.#opened(step.on), step.text, step.thinks ? "reasoning" : "text");
      case "call":
        return this.#call(step);
      case "answer": {
        const call = this.#calls[step.on];
        return call === undefined ? undefined : this.#journal.result(call, "result", step.fails);
      }
      case "complete":
        return this.#complete(step);
      case "abandon": {
        const [message] = this.#open.splice(step.on, 1);
        return message && this.#journal.abandon(message);
      }
      case "ask":
        this.#questions.push(`request-${this.#questions.length}`);
        return this.#journal.ask(this.#questions.at(-1) ?? "", step.about === null ? undefined : this.#calls[step.about]);
      case "settle": {
        const question = this.#questions[step.on];
        return question === undefined ? undefined : this.#journal.settle(question, { optionId: "y", by: step.by });
      }
      case "user":
        return this.#journal.user("next");
      case "notice":
        return this.#journal.notice("status");
      case "error":
        return this.#journal.error("overloaded");
      case "end":
        return this.#journal.end();
    }
  }

  /** What is still open is completed. */
  end(): Journal {
    for (const message of this.#open.splice(0)) this.#journal.complete(message);
    return this.#journal;
  }

  #opened(at: number): OpenMessage {
    return (this.#open[Math.min(at, this.#open.length)] ??= this.#journal.message());
  }

  #call(step: Does<"call">): void {
    const message = this.#opened(step.on);
    const call = this.#journal.call(message, "Tool", { of: this.#calls.length }, step);
    if (step.told) this.#calls.push(call);
    else this.#inMessage.set(message, [...(this.#inMessage.get(message) ?? []), call]);
  }

  #complete({ on, under }: Does<"complete">): void {
    const [message] = this.#open.splice(on, 1);
    if (!message) return;
    this.#journal.complete(message, { parent: under === null ? undefined : this.#calls[under] });
    this.#calls.push(...(this.#inMessage.get(message) ?? []));
  }
}
