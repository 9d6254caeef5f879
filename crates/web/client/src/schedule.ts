/** Runs `then` once, soon. The returned function cancels it. */
export type Scheduler = (then: () => void) => () => void;

/** A page that is not visible draws no frames, so this delay is used instead. */
const UNSEEN_MS = 100;

/** Runs `then` with the next frame, or soon if no frames are drawn. */
export const nextFrame: Scheduler = (then) => {
  const { requestAnimationFrame, cancelAnimationFrame } = globalThis as Partial<typeof globalThis>;
  let frame: number | undefined;
  const cancel = () => {
    clearTimeout(timer);
    if (frame !== undefined) cancelAnimationFrame?.(frame);
  };
  const run = () => {
    cancel();
    then();
  };
  const timer = setTimeout(run, requestAnimationFrame ? UNSEEN_MS : 0);
  frame = requestAnimationFrame?.(run);
  return cancel;
};

/** Drawing has priority, but at most for this long. */
const BUSY_MS = 300;

/** Resolves when the browser has nothing left to draw. */
export function whenIdle(): Promise<void> {
  const { requestIdleCallback } = globalThis as Partial<typeof globalThis>;
  return new Promise((resolve) => {
    if (requestIdleCallback) requestIdleCallback(() => resolve(), { timeout: BUSY_MS });
    else setTimeout(resolve, 0);
  });
}
