import type { Agent, OpenQuestion } from "@tokenrail/client";
import { useTokenrail } from "@tokenrail/client/react";
import { useEffect, useMemo, useState } from "react";

import { asksUser } from "../agent/asking.ts";
import { needsYou } from "../agent/StatusBadge.tsx";
import { fieldsOf, inShort, unhidden } from "../content/given.ts";
import { kindOf } from "../content/kind.ts";
import { nameOf } from "../content/name.ts";

const none: readonly OpenQuestion[] = [];

/** The open permission requests, oldest first. They are requested again when the agents that wait change. */
export function useOpenQuestions(agents: readonly Agent[]): readonly OpenQuestion[] {
  const client = useTokenrail();
  const [questions, setQuestions] = useState(none);
  const waiting = agents
    .filter(needsYou)
    .map(({ id, openQuestions, waitingSince }) => `${id} ${openQuestions} ${waitingSince}`)
    .sort()
    .join();
  useEffect(() => {
    if (!waiting) return setQuestions(none);
    const leaving = new AbortController();
    // A failed request is ignored: the title and the list show that an agent waits.
    client.questions({ signal: leaving.signal }).then(setQuestions, () => undefined);
    return () => leaving.abort();
  }, [client, waiting]);
  return questions;
}

/** The oldest request of each agent. */
export function useOldest(questions: readonly OpenQuestion[]): ReadonlyMap<string, OpenQuestion> {
  return useMemo(() => {
    const oldest = new Map<string, OpenQuestion>();
    for (const question of questions) if (!oldest.has(question.agentId)) oldest.set(question.agentId, question);
    return oldest;
  }, [questions]);
}

/** What is asked, in a few words: the question, or what is to be allowed. A list leaves out a long input. */
export function askedIn({ toolName, input }: OpenQuestion): string {
  const { question } = fieldsOf(input);
  if (asksUser(toolName)) return typeof question === "string" ? unhidden(inShort(question)) : "Question";
  const kind = kindOf(toolName, input);
  if (kind.kind === "plan") return "Approve the plan";
  const name = unhidden(nameOf(toolName)) || "a tool";
  if (kind.kind === "edit") return `${name} ${unhidden(fileOf(kind.path))}`;
  return kind.kind === "command" ? `${name}: ${unhidden(inShort(kind.command))}` : name;
}

function fileOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1) || path;
}
