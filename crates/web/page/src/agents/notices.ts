import type { Agent, OpenQuestion } from "@tokenrail/client";
import { useEffect, useEffectEvent, useRef, useState } from "react";

import { asksUser } from "../agent/asking.ts";
import { titleOf } from "../agent/title.ts";
import { base } from "../connection/address.ts";
import { unhidden } from "../content/given.ts";

/** The requests that are remembered, so that the user is notified of each only once. */
const rememberedRequests = 1_000;

/**
 * Notifies the user of each permission request that arrives while the page is hidden, if the browser allows it. Returns
 * the function that asks for this permission, or undefined if there is nothing to ask.
 */
export function useNotices(
  agents: readonly Agent[],
  questions: readonly OpenQuestion[],
  onOpen: (id: string) => void,
): (() => void) | undefined {
  const [permission, setPermission] = useState(permissionNow);
  const known = useRef(new Set<string>());
  const tell = useEffectEvent((questions: readonly OpenQuestion[]) => {
    for (const question of questions) {
      const key = `${question.agentId} ${question.requestId}`;
      if (known.current.has(key)) continue;
      remember(known.current, key);
      if (document.hidden) notify(question, key, agents, onOpen);
    }
  });
  useEffect(() => {
    if (permission === "granted") tell(questions);
  }, [permission, questions]);
  if (permission !== "default") return undefined;
  return () => void Notification.requestPermission().then(setPermission);
}

function permissionNow(): NotificationPermission {
  return typeof Notification === "undefined" ? "denied" : Notification.permission;
}

function remember(known: Set<string>, key: string): void {
  known.add(key);
  const [oldest] = known;
  if (known.size > rememberedRequests && oldest !== undefined) known.delete(oldest);
}

/** A list leaves out a long input, so the text of a question is not always known. */
function bodyOf({ toolName }: OpenQuestion): string {
  return asksUser(toolName) ? "The agent has a question for you." : `Allow ${unhidden(toolName) || "a tool"}?`;
}

function notify(question: OpenQuestion, tag: string, agents: readonly Agent[], onOpen: (id: string) => void): void {
  const agent = agents.find(({ id }) => id === question.agentId);
  try {
    const notice = new Notification(`${agent ? titleOf(agent) : "An agent"} needs you`, {
      body: bodyOf(question),
      icon: `${base}/icon-waiting.svg`,
      // If several tabs show the page, the browser shows one notification.
      tag,
    });
    notice.onclick = () => {
      window.focus();
      onOpen(question.agentId);
      notice.close();
    };
  } catch {
    // Some browsers allow notifications only from a service worker.
  }
}
