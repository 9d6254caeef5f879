/** What has been painted is given so long to be seen before the rest begins, where a browser is never idle. */
const busyMs = 300;

/** After what is being drawn now has been painted, and when nothing is left to be done for it; the answer cancels. */
export function soon(then: () => void): () => void {
  let idle: number | undefined;
  // The frame after the next one: that is when the next one has been painted.
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
