import { type FormEvent, useState } from "react";

import { tokenIn } from "./token.ts";

interface Props {
  /** Whether the server rejected the token. */
  readonly wrong: boolean;
  readonly onToken: (token: string) => void;
}

export function AskForToken({ wrong, onToken }: Props) {
  const [text, setText] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const token = tokenIn(text);
    if (token) onToken(token);
  };
  return (
    <main className="door">
      <form className="card" onSubmit={submit} data-testid="ask-for-token">
        <h1>{wrong ? "Wrong token" : "Enter the access token"}</h1>
        <p>
          When the server starts in a terminal, it prints the address of this page, including the token. Open that address, or paste it here.{" "}
          <code>tokenrail token</code> prints the token.
        </p>
        <label className="field">
          <span>Address or token</span>
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
            Open
          </button>
        </div>
      </form>
    </main>
  );
}
