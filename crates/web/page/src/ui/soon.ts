/** If the browser is never idle, the rest begins this long after the paint. */
const busyMs = 300;

/** Runs `then` after the next paint, when the browser is idle. The returned function cancels it. */
export function soon(then: () => void): () => void {
  let idle: number | undefined;
  // The next frame has been painted when the frame after it begins.
  let frame = requestAnimationFrame(() => {
    frame = requestAnimationFrame(() => {
      if (typeof requestIdleCallback === "undefined") then();
      else idle = requestIdleCallback(then, { timeout: busyMs });
    });
  });
  return () => {
    cancelAnimationFrame(frame);
    if (idle !== undefined) cancelIdleCallback(idle);
  };
}
