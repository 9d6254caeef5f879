// Reads the bodies of responses. A body may take as long as it needs, if it does not pause for too long.
import { after } from "./timers.js";

/** After a pause of this length, a body counts as lost. Its length is not limited. */
const SILENCE_MS = 30_000;

export type Chunk = Uint8Array<ArrayBuffer>;

/** Reads the body piece by piece. An abort ends the wait immediately, with the signal's reason. */
export async function* piecesOf(response: Response, signal?: AbortSignal): AsyncGenerator<Chunk, void> {
  signal?.throwIfAborted();
  const reader = response.body?.getReader();
  if (!reader) return;
  try {
    for (;;) {
      const { done, value } = await unlessSilent(reader.read(), signal);
      if (done) return;
      yield value;
    }
  } finally {
    // If nobody reads the body, its connection is of no use.
    reader.cancel().catch(() => {});
  }
}

/** Reads the whole body. */
export async function chunksOf(response: Response, signal?: AbortSignal): Promise<Chunk[]> {
  const chunks: Chunk[] = [];
  for await (const piece of piecesOf(response, signal)) chunks.push(piece);
  return chunks;
}

export async function jsonOf(response: Response, signal?: AbortSignal): Promise<unknown> {
  const decoder = new TextDecoder();
  let text = "";
  for (const chunk of await chunksOf(response, signal)) text += decoder.decode(chunk, { stream: true });
  return JSON.parse(text + decoder.decode());
}

function unlessSilent<T>(more: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = () => reject(signal?.reason);
    const cancelTimer = after(SILENCE_MS, () => reject(new Error("the response stalled")));
    signal?.addEventListener("abort", abort, { once: true });
    more.then(resolve, reject).finally(() => {
      cancelTimer();
      signal?.removeEventListener("abort", abort);
    });
  });
}
