import { type AgentType, type Client, freshKey, type Launch } from "@tokenrail/client";
import { type FormEvent, type KeyboardEvent, useRef, useState } from "react";

import { isUnreachable, useFailure } from "../connection/failure.ts";
import { AttachButton, Thumbnails, useAdding } from "../prompt/Attach.tsx";
import { type Attached, sendable, useAttached } from "../prompt/attached.ts";
import { newAgent, useText } from "../prompt/draft.ts";
import { Failure } from "../ui/Failure.tsx";
import { counted, sentence } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { submitOnEnter } from "../ui/keys.ts";
import { clearLaunch, draftOf, launchFields } from "./again.ts";
import { folderProblem, OptionalField } from "./LaunchFields.tsx";
import { recent, remember } from "./recent.ts";
import { SavedPrompts } from "./SavedPrompts.tsx";

/** The reasons of more types would be longer than the form. */
const fewTypes = 3;

interface Props {
  readonly client: Client;
  readonly types: readonly AgentType[];
  /** Folders in which other agents work. */
  readonly folders?: readonly string[];
  readonly onLaunched: (id: string) => void;
}

export function LaunchForm({ client, types, folders = [], onLaunched }: Props) {
  // What was written stays if the session ends, or the user looks at an agent first.
  const [prompt, changePrompt] = useText(newAgent);
  const [images, changeImages] = useAttached(newAgent);
  const { submit, busy, sentFolder, failure, setFailure } = useLaunch(client, images, (id) => {
    clearLaunch();
    changeImages(() => []);
    onLaunched(id);
  });
  const [type, setType] = useText(draftOf("type"));
  const [cwd] = useText(draftOf("cwd"));
  const folder = folderProblem(failure, sentFolder);
  // It says nothing about another folder that the user types now.
  const wrongFolder = cwd.trim() === sentFolder ? folder : undefined;
  const ordered = [...types.filter((known) => known.available), ...types.filter((known) => !known.available)];
  const preferred = types.find((known) => known.type === recent("type")[0] && known.available) ?? firstOf(types);
  const chosen = types.find((known) => known.type === type) ?? preferred;
  const accepts = chosen?.can.images;
  const add = (more: readonly Attached[]) => changeImages((now) => [...now, ...more]);
  const remove = (key: Attached["key"]) => changeImages((now) => now.filter((image) => image.key !== key));
  const adding = useAdding({ type: chosen, images, add, onFailure: setFailure });
  return (
    <form className="launch" onSubmit={submit} aria-label="Launch an agent" data-testid="launch-form" {...adding.box}>
      <div className="launch-box">
        <label>
          <span className="unseen">Prompt</span>
          <textarea
            name="prompt"
            required
            rows={4}
            value={prompt}
            onChange={({ target }) => changePrompt(() => target.value)}
            placeholder="What should the agent do?"
            onKeyDown={(event: KeyboardEvent<HTMLTextAreaElement>) => submitOnEnter(event)}
            aria-describedby="launch-failure"
          />
        </label>
        <Thumbnails images={images} onRemove={remove} />
        <div className="launch-line">
          <TypeField types={ordered} chosen={chosen} onChange={(next) => setType(() => next)} />
          {accepts && <AttachButton onFiles={(files) => void adding.take(files)} />}
          <button type="submit" className="button primary" disabled={busy || !chosen}>
            <Icon name="send" /> {busy ? "Launching…" : "Launch"}
          </button>
        </div>
      </div>
      <SavedPrompts prompt={prompt} onPick={(saved) => changePrompt(() => saved)} />
      <Fields chosen={chosen} folders={folders} wrongFolder={wrongFolder} />
      {accepts === false && images.length > 0 && (
        <p className="hint">Agents of this type accept no images. Remove the images, or choose another type.</p>
      )}
      {chosen?.problem && <p className="hint">{sentence(chosen.problem)}</p>}
      <Unavailable types={types.filter((known) => !known.available && known.problem && known !== chosen)} />
      {chosen?.unsetKeys && <NoKey variables={chosen.unsetKeys} />}
      <div id="launch-failure" aria-live="polite">
        {failure && !folder && <Failure error={failure} />}
      </div>
    </form>
  );
}

interface FieldsProps {
  readonly chosen: AgentType | undefined;
  readonly folders: readonly string[];
  readonly wrongFolder: string | undefined;
}

function Fields({ chosen, folders, wrongFolder }: FieldsProps) {
  const isApi = chosen?.runner === "http";
  return (
    <div className="fields">
      <OptionalField
        label="Folder"
        name="cwd"
        isLong
        suggested={[...new Set([...recent("cwd"), ...folders])]}
        placeholder="a new, empty folder"
        problem={wrongFolder}
        spellCheck={false}
      />
      <OptionalField
        label="Model"
        name="model"
        isRequired={isApi}
        suggested={recent("model")}
        placeholder={isApi ? "required, unless the type sets one" : "the agent's default"}
        spellCheck={false}
      />
      <OptionalField label="Name" name="name" placeholder="the beginning of the prompt" maxLength={200} />
    </div>
  );
}

function NoKey({ variables }: { readonly variables: readonly string[] }) {
  return (
    <p className="hint">
      This type has no API key. If the agent program is logged in on the server's machine, you need none. Otherwise log in
      there, or set {variables.length === 1 ? "the variable" : "one of the variables"} {variables.join(", ")} in the
      server's environment and restart the server.
    </p>
  );
}

/** Launches what the form contains, and remembers it for the next time. */
function useLaunch(client: Client, images: readonly Attached[], onLaunched: Props["onLaunched"]) {
  const [failure, setFailure] = useFailure();
  const [busy, setBusy] = useState(false);
  const [sentFolder, setSentFolder] = useState("");
  const { keyFor, forget } = useKey();
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      const launch = launchOf(new FormData(event.currentTarget), images);
      setSentFolder(launch.cwd ?? "");
      const agent = await client.launch(launch, { idempotencyKey: keyFor(launch) });
      for (const field of ["type", "model", "cwd"] as const) remember(field, launch[field]);
      onLaunched(agent.id);
    } catch (error) {
      setFailure(error as Error);
      // A launch that the server has refused is another one when it is tried again.
      if (!isUnreachable(error)) forget();
      setBusy(false);
    }
  };
  return { submit, busy, sentFolder, failure, setFailure };
}

interface TypeFieldProps {
  readonly types: readonly AgentType[];
  readonly chosen: AgentType | undefined;
  readonly onChange: (type: string) => void;
}

function TypeField({ types, chosen, onChange }: TypeFieldProps) {
  return (
    <label className="launch-type">
      <span className="unseen">Type</span>
      <select
        name="type"
        title={chosen && whatItIs(chosen)}
        value={chosen?.type ?? ""}
        onChange={(event) => onChange(event.target.value)}
      >
        {types.map((known) => (
          <option key={known.type} value={known.type} disabled={!known.available}>
            {known.type}
            {/* The closed field has no room for more than the name. */}
            {known.default && known !== chosen ? " (default)" : ""}
            {known.available ? "" : " — not available"}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Why types are not available, and what would change that. A disabled option cannot say it. */
function Unavailable({ types }: { readonly types: readonly AgentType[] }) {
  if (types.length === 0) return null;
  return (
    <details className="unavailable" open={types.length <= fewTypes}>
      <summary className="hint">{counted(types.length, "type")} not available here</summary>
      <ul>
        {types.map(({ type, problem = "" }) => (
          <li key={type} className="hint">
            <strong>{type}</strong>: {sentence(problem)}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** If a launch gets no response, the same launch has the same key, so that the agent is launched only once. */
function useKey() {
  const last = useRef<{ body: string; key: string }>(undefined);
  const keyFor = (launch: Launch) => {
    const body = JSON.stringify(launch);
    if (body !== last.current?.body) last.current = { body, key: freshKey() };
    return last.current.key;
  };
  return { keyFor, forget: () => (last.current = undefined) };
}

function firstOf(types: readonly AgentType[]): AgentType | undefined {
  const available = types.filter((known) => known.available);
  return available.find((known) => known.default) ?? available[0] ?? types[0];
}

/** Empty fields are not sent, so the server uses its defaults. */
function launchOf(form: FormData, images: readonly Attached[]): Launch {
  const field = (name: string) => String(form.get(name) ?? "").trim();
  const launch: Launch = { prompt: String(form.get("prompt") ?? "") };
  for (const name of launchFields) {
    const value = field(name);
    if (value) launch[name] = value;
  }
  if (images.length > 0) launch.images = sendable(images);
  return launch;
}

/** What agents of a runner do. */
const doings = new Map([
  ["process", "Runs a program"],
  ["http", "Calls a model API"],
  ["proxy", "Runs in another service"],
  ["replay", "Plays a recording"],
]);

function whatItIs({ runner, version }: AgentType): string {
  return [doings.get(runner), version].filter(Boolean).join(" · ");
}
