/** After what is being drawn now has been painted; the answer cancels. */
export function soon(then: () => void): () => void {
  // The frame after the next one: that is when the next one has been painted.
  let frame = requestAnimationFrame(() => {
    frame = requestAnimationFrame(then);
  });
  return () => cancelAnimationFrame(frame);
}
