// Packed deltas: one frame with consecutive deltas of one part of a message. This module turns it into events.
import type { AgentEvent } from "./frames.js";
import type { AgentDeltas } from "./generated/wire.js";

const MAX = (1n << 64n) - 1n;

/** The events in a packed frame, in order. */
export function unpacked(deltas: AgentDeltas): AgentEvent[] {
  const { agentId, messageId, part, eventType, toolCallId, toolName, from, createdAt, elapsedMs, texts } = deltas;
  const metadata: AgentEvent["metadata"] = { eventType, messageId, part, ...(toolCallId !== undefined && { toolCallId }) };
  let [ms, time] = [elapsedMs ? Date.parse(createdAt) : 0, createdAt];
  return texts.map((content, index) => {
    const elapsed = elapsedMs?.[index] ?? 0;
    if (elapsed !== 0) time = new Date((ms += elapsed)).toISOString();
    const [sequenceNumber, at] = [from + index, time];
    return {
      // Computed only on request, because the ids of most deltas are never used.
      get id() {
        return eventId(agentId, Date.parse(at), sequenceNumber);
      },
      agentId,
      sequenceNumber,
      type: "assistant",
      role: "assistant",
      content,
      metadata: index === 0 && toolName !== undefined ? { ...metadata, toolName } : metadata,
      createdAt: at,
    };
  });
}

/** The events of a page that may contain packed deltas. */
export function unpackedPage(items: readonly (AgentEvent | AgentDeltas)[]): AgentEvent[] {
  return items.flatMap((item) => ("texts" in item ? unpacked(item) : [item]));
}

/** The id of a delta event: a UUID of version 7, computed in the same way as by the server. */
export function eventId(agentId: string, atMs: number, sequenceNumber: number): string {
  const hex = agentId.replaceAll("-", "");
  const [high, low] = [BigInt(`0x${hex.slice(0, 16)}`), BigInt(`0x${hex.slice(16)}`)];
  const first = mixed(low ^ mixed(BigInt(sequenceNumber)));
  const time = Math.max(atMs, 0).toString(16).padStart(12, "0");
  const [a, b] = [hexOf(first), hexOf(mixed(first ^ high))];
  const variant = ((Number.parseInt(a.charAt(4), 16) & 3) | 8).toString(16);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${a.slice(1, 4)}-${variant}${a.slice(5, 8)}-${a.slice(8)}${b.slice(0, 4)}`;
}

/** The finalizer of SplitMix64. */
function mixed(word: bigint): bigint {
  let z = (word + 0x9e3779b97f4a7c15n) & MAX;
  z = ((z ^ (z >> 30n)) * 0xbf58476d1ce4e5b9n) & MAX;
  z = ((z ^ (z >> 27n)) * 0x94d049bb133111ebn) & MAX;
  return z ^ (z >> 31n);
}

function hexOf(word: bigint): string {
  return word.toString(16).padStart(16, "0");
}
