import { type FormEvent, useState } from "react";

import type { Door } from "./door.ts";
import { type Login, loginPasted } from "./token.ts";

interface Props {
  /** Why the page has no access. */
  readonly door: Exclude<Door, "open" | "unknown">;
  readonly onLogin: (login: Login) => void;
}

const headings = { asked: "Log in", wrong: "Wrong token", spent: "This link was used or has expired" } as const;

export function AskForToken({ door, onLogin }: Props) {
  const [text, setText] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const login = loginPasted(text);
    if (login) onLogin(login);
  };
  return (
    <main className="door">
      <form className="card" onSubmit={submit} data-testid="ask-for-token">
        <h1>{headings[door]}</h1>
        <p>
          On the server's machine, <code>tokenrail open</code> prints a link that logs this browser in. Open that link,
          or paste it here. <code>tokenrail token</code> prints the access token, which you can paste instead. This browser then stays logged in.
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
        <div className="form-actions">
          <button type="submit" className="button primary">
            Log in
          </button>
        </div>
      </form>
    </main>
  );
}
