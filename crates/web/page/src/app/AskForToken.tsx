import { type FormEvent, useState } from "react";

import { Icon } from "../ui/Icon.tsx";
import type { Door } from "./door.ts";
import { type Login, loginPasted } from "./token.ts";

interface Props {
  /** Why the page has no access. */
  readonly door: Exclude<Door, "open" | "unknown">;
  /** Resolves to `failed` if it is not known whether the login is right. */
  readonly onLogin: (login: Login) => Promise<"failed" | undefined>;
}

const headings = {
  asked: "Log in",
  wrong: "Wrong token",
  spent: "This link has already been used, or it has expired",
} as const;

export function AskForToken({ door, onLogin }: Props) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [failed, setFailed] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const login = loginPasted(text);
    if (!login || busy) return;
    setBusy(true);
    setFailed(false);
    const outcome = await onLogin(login);
    setBusy(false);
    setFailed(outcome === "failed");
  };
  return (
    <main className="door">
      <form className="card" onSubmit={submit} data-testid="ask-for-token">
        <h1>{headings[door]}</h1>
        <p>
          On the server's machine, <code>tokenrail open --print</code> prints a link that logs this browser in. Open that link,
          or paste it here. <code>tokenrail token</code> prints the access token, which you can paste instead. This
          browser then stays logged in for a limited time, usually 30 days.
        </p>
        <label className="field">
          <span>Link or token</span>
          <input
            type="password"
            value={text}
            autoFocus
            autoComplete="off"
            spellCheck={false}
            onChange={(event) => setText(event.target.value)}
          />
        </label>
        {failed && (
          <p className="problem" role="alert">
            <Icon name="alert" /> The server cannot be reached. Try again.
          </p>
        )}
        <div className="form-actions">
          <button type="submit" className="button primary" disabled={busy}>
            {busy ? "Logging in…" : "Log in"}
          </button>
        </div>
      </form>
    </main>
  );
}
