import { type AgentType, type Client, type Launch, TokenrailError } from "@tokenrail/client";
import { type ComponentProps, type FormEvent, type KeyboardEvent, useState } from "react";

import { useFailure } from "../app/failure.ts";
import { sentence } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { submitOnEnter } from "../ui/keys.ts";

interface Props {
  readonly client: Client;
  readonly types: readonly AgentType[];
  readonly onLaunched: (id: string) => void;
}

export function LaunchForm({ client, types, onLaunched }: Props) {
  const [failure, setFailure] = useFailure();
  const [busy, setBusy] = useState(false);
  const [type, setType] = useState<string>();
  const preferred = types.find((known) => known.default && known.available) ?? types.find((known) => known.available);
  const chosen = types.find((known) => known.type === type) ?? preferred ?? types[0];
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      const agent = await client.launch(launchOf(new FormData(event.currentTarget)));
      onLaunched(agent.id);
    } catch (error) {
      setFailure(error as Error);
      setBusy(false);
    }
  };
  return (
    <form className="launch" onSubmit={submit} aria-label="Launch an agent" data-testid="launch-form">
      <label className="field">
        <span>Prompt</span>
        <textarea
          name="prompt"
          required
          rows={4}
          placeholder="What should the agent do?"
          onKeyDown={(event: KeyboardEvent<HTMLTextAreaElement>) => submitOnEnter(event)}
          aria-describedby="launch-failure"
        />
      </label>
      <div className="fields">
        <TypeField types={types} chosen={chosen} onChange={setType} />
        <OptionalField
          label="Model"
          name="model"
          placeholder={chosen?.runner === "http" ? "required unless configured" : "the default"}
          spellCheck={false}
        />
        <OptionalField label="Working directory" name="cwd" placeholder="a new directory" spellCheck={false} />
        <OptionalField label="Name" name="name" placeholder="from the prompt" maxLength={200} />
      </div>
      {chosen?.problem && <p className="hint">{sentence(chosen.problem)}</p>}
      {chosen?.unsetKeys && (
        <p className="hint">
          No API key is set for this type. Log in on the server with the agent program, or set one of these variables
          for the server: {chosen.unsetKeys.join(", ")}.
        </p>
      )}
      <div id="launch-failure" aria-live="polite">
        {failure && <Failure error={failure} />}
      </div>
      <div className="form-actions">
        <button type="submit" className="button primary" disabled={busy || !chosen}>
          <Icon name="send" /> {busy ? "Launching…" : "Launch"}
        </button>
        <span className="hint">{chosen ? whatItIs(chosen) : ""}</span>
      </div>
    </form>
  );
}

interface TypeFieldProps {
  readonly types: readonly AgentType[];
  readonly chosen: AgentType | undefined;
  readonly onChange: (type: string) => void;
}

function TypeField({ types, chosen, onChange }: TypeFieldProps) {
  return (
    <label className="field">
      <span>Type</span>
      <select name="type" value={chosen?.type ?? ""} onChange={(event) => onChange(event.target.value)}>
        {types.map((known) => (
          <option key={known.type} value={known.type} disabled={!known.available}>
            {known.type}
            {known.default ? " (default)" : ""}
            {known.available ? "" : " — not available"}
          </option>
        ))}
      </select>
    </label>
  );
}

/** A field that the server has a default for. */
function OptionalField({ label, ...input }: ComponentProps<"input"> & { readonly label: string }) {
  return (
    <label className="field">
      <span>
        {label} <em>optional</em>
      </span>
      <input autoComplete="off" {...input} />
    </label>
  );
}

/** An error message, with the invalid fields. */
export function Failure({ error }: { readonly error: Error }) {
  const code = error instanceof TokenrailError ? error.code : undefined;
  return (
    <p className="problem" role="alert">
      <Icon name="alert" />
      <span>
        {sentence(error.message)}
        {code && <code>{code}</code>}
      </span>
    </p>
  );
}

/** Empty fields are not sent, so the server uses its defaults. */
function launchOf(form: FormData): Launch {
  const field = (name: string) => String(form.get(name) ?? "").trim();
  const launch: Launch = { prompt: String(form.get("prompt") ?? "") };
  for (const name of ["type", "model", "cwd", "name"] as const) {
    const value = field(name);
    if (value) launch[name] = value;
  }
  return launch;
}

function whatItIs(type: AgentType): string {
  return [`${type.runner} runner`, type.format && `${type.format} format`, type.version].filter(Boolean).join(" · ");
}
