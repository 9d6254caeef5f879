/** Does it soon, and once; the answer cancels. */
export type Scheduler = (then: () => void) => () => void;

/** A page that cannot be seen draws no frames. */
const UNSEEN_MS = 100;

/** With the next frame that is drawn; soon, where none is. */
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

/** What is to be drawn goes first, but not for longer than this. */
const BUSY_MS = 300;

/** When nothing is left to be drawn. */
export function whenIdle(): Promise<void> {
  const { requestIdleCallback } = globalThis as Partial<typeof globalThis>;
  return new Promise((resolve) => {
    if (requestIdleCallback) requestIdleCallback(() => resolve(), { timeout: BUSY_MS });
    else setTimeout(resolve, 0);
  });
}
