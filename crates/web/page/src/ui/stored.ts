// Follows what the page keeps in the browser's storage. Each value has a hook of its own, which reads it again.

const listeners = new Set<() => void>();

/** Tells all hooks of this tab that a value has changed. */
export function storedChanged(): void {
  for (const listener of [...listeners]) listener();
}

/** Calls `listener` after each change, also by another tab. */
export function followStored(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener("storage", listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener("storage", listener);
  };
}
