/** Starts a timer. The returned function cancels it. */
export function timer(ms: number, then: () => void): () => void {
  const id = setTimeout(then, ms);
  return () => clearTimeout(id);
}

/** Starts a timer that does not keep a Node process alive. */
export function after(ms: number, then: () => void): () => void {
  const id: unknown = setTimeout(then, ms);
  if (typeof id === "object" && id !== null && "unref" in id) (id as { unref(): void }).unref();
  return () => clearTimeout(id as Parameters<typeof clearTimeout>[0]);
}

/** Waits. An abort ends the wait immediately, with the signal's reason. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
