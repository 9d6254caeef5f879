// Where the tab keeps what the user has written: for the time after a reload, or after a login.

/** Begins the keys of messages that were not delivered. */
export const unsentKey = "tokenrail-unsent";

/** Begins the keys of messages that were not sent. */
export const draftKey = "tokenrail-draft";

/** Forgets all of it. The next user of the tab must neither see nor send it. */
export function forgetTexts(): void {
  try {
    for (const key of Object.keys(sessionStorage))
      if (key.startsWith(unsentKey) || key.startsWith(draftKey)) sessionStorage.removeItem(key);
  } catch {
    // The storage is disabled, so nothing is in it.
  }
}
