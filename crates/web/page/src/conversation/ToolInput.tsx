import { useRef } from "react";

import { fieldsOf, fileIn, inShort, mainOf, othersIn } from "../content/given.ts";
import { type AgentKind, type EditKind, kindOf, type LookKind } from "../content/kind.ts";
import { Highlighted, languageOf } from "../markdown/highlight.tsx";
import { linked, Markdown } from "../markdown/Markdown.tsx";
import { Icon } from "../ui/Icon.tsx";
import { Clipped } from "./Clipped.tsx";
import { useKept } from "./kept.tsx";
import type { ToolRow } from "./row.ts";
import { diffOf } from "./tools/diff.ts";
import { DiffView, LayoutSwitch } from "./tools/DiffView.tsx";
import { InputFields } from "./tools/InputFields.tsx";
import { useIsWide, useLayout } from "./tools/layout.ts";
import { Patch } from "./tools/Patch.tsx";
import { usePlaces } from "./tools/places.ts";
import { reportedFiles } from "./tools/reported.ts";
import { ReportedDiff } from "./tools/ReportedDiff.tsx";
import { Todos } from "./tools/Todos.tsx";

/** Lines of an input that are shown until the user requests the rest. */
export const inputLines = 14;

/** The header of a card has one line. */
const summaryLength = 200;

interface Props {
  readonly id: string;
  readonly input: unknown;
}

/** The input of a tool, in the form that is easiest to read. */
export function ToolInput({ row }: { readonly row: ToolRow }) {
  const { key: id, name, input } = row;
  const kind = kindOf(name, input);
  switch (kind.kind) {
    case "todos":
      return <Todos todos={kind.todos} />;
    case "plan":
      return (
        <div className="words plan" role="group" aria-label="Plan">
          <Markdown text={kind.text} />
        </div>
      );
    case "patch":
      if (reportedFiles(row).length > 0) return <ReportedDiff row={row} />;
      return (
        <Clipped id={`${id} input`} label="Input" text={kind.text} lines={patchLines}>
          {(shown) => <Patch text={shown} />}
        </Clipped>
      );
    case "edit":
      return reportedFiles(row).length > 0 ? (
        <>
          <ReportedDiff row={row} />
          <BesideEdit kind={kind} input={input} />
        </>
      ) : (
        <Edit row={row} kind={kind} />
      );
    case "cell":
      return (
        <>
          {kind.source && <Code id={id} text={kind.source} language={kind.language} />}
          <Others input={input} names={namesBeside(kind.shown, input)} />
        </>
      );
    case "agent":
      return <SubAgent id={id} kind={kind} input={input} />;
    case "look":
      return kind.isWeb && kind.what ? <Web kind={kind} input={input} /> : <PlainInput id={id} input={input} />;
    default:
      return <PlainInput id={id} input={input} />;
  }
}

/** Lines of a patch that are shown until the user requests the rest. */
export const patchLines = 40;

/** Fields that say the same for every edit, unless they are on. */
const isUsual = (name: string, value: unknown) =>
  /^(type|instruction)$/.test(name) || (value === false && /^(replace_?all|allow_?multiple)$/i.test(name));

function Edit({ row, kind }: { readonly row: ToolRow; readonly kind: EditKind }) {
  const { key: id, input } = row;
  const frame = useRef<HTMLDivElement>(null);
  const [layout] = useLayout();
  // A file that is written has no old text, so there is nothing to compare.
  const canSplit = useIsWide(frame) && !kind.isWhole;
  const places = usePlaces(row);
  const diffs = kind.changes.map(diffOf).filter((diff) => diff !== undefined);
  if (diffs.length < kind.changes.length) return <PlainInput id={id} input={input} />;
  return (
    <>
      <div className="edit" ref={frame}>
        {canSplit && <LayoutSwitch />}
        {diffs.map((diff, at) => (
          <DiffView
            key={at}
            id={`${id} diff ${at}`}
            diff={diff}
            place={places[at]}
            language={languageOf(kind.path)}
            layout={canSplit ? layout : "unified"}
          />
        ))}
      </div>
      <BesideEdit kind={kind} input={input} />
    </>
  );
}

/** The fields of an edit that its change does not show. */
function BesideEdit({ kind, input }: { readonly kind: EditKind; readonly input: unknown }) {
  const names = namesBeside(kind.shown, input).filter((name) => !isUsual(name, fieldsOf(input)[name]));
  return <Others input={input} names={names} />;
}

/** What a sub-agent was told. */
function SubAgent({ id, kind, input }: { id: string; kind: AgentKind; input: unknown }) {
  const [open, setOpen] = useKept(`${id} input prompt open`, false);
  return (
    <div className="agent-prompt">
      <button type="button" className="disclosure" aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name="chevron" />
        <span>Prompt</span>
        {!open && <span className="tool-summary">{kind.prompt.slice(0, summaryLength)}</span>}
      </button>
      {open && (
        <div className="words plan" role="group" aria-label="Prompt">
          <Markdown text={kind.prompt} />
        </div>
      )}
      <Others input={input} names={namesBeside(kind.shown, input)} />
    </div>
  );
}

/** The head shows all of a shorter query. */
const longestQuery = 40;

/** What was looked up on the web. */
function Web({ kind: { what, verb }, input }: { readonly kind: LookKind; readonly input: unknown }) {
  const fields = fieldsOf(input);
  const isInHead = verb === "Searched" && what.length <= longestQuery;
  return (
    <>
      {!isInHead && <p className="web">{linked(what, what) ?? what}</p>}
      <Others input={input} names={Object.keys(fields).filter((name) => fields[name] !== what)} />
    </>
  );
}

function namesBeside(shown: readonly string[], input: unknown): string[] {
  return Object.keys(fieldsOf(input)).filter((name) => !shown.includes(name));
}

function PlainInput({ id, input }: Props) {
  const main = mainOf(input);
  if (main)
    return (
      <>
        <Code id={id} text={main.text} language={main.language} />
        <Others input={input} names={othersIn(input, main).map(({ name }) => name)} />
      </>
    );
  // Some tools have a number or a boolean as input.
  if (typeof input === "number" || typeof input === "boolean") return <Code id={id} text={String(input)} language="json" />;
  const names = Object.keys(input ?? {});
  // The header already shows everything.
  if (names.length === 0 || (names.length === 1 && fileIn(input))) return null;
  const json = <Code id={id} text={JSON.stringify(input, null, 2)} language="json" />;
  if (Array.isArray(input)) return json;
  return (
    <>
      <InputFields id={`${id} input`} fields={fieldsOf(input)} />
      <div className="detail">{json}</div>
    </>
  );
}

/** The other fields in short. The raw event has all of them. */
function Others({ input, names }: { readonly input: unknown; readonly names: readonly string[] }) {
  const fields = fieldsOf(input);
  const summary = summaryOf(input);
  const others = names.filter((name) => fields[name] !== summary);
  if (others.length === 0) return null;
  return (
    <dl className="others">
      {others.map((name) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{inShort(fields[name])}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The part of an input that distinguishes calls: the command, the file, or else the first field. */
export function summaryOf(input: unknown): string {
  if (typeof input === "number" || typeof input === "boolean") return String(input);
  const fields = typeof input === "string" ? { input } : fieldsOf(input);
  const named = ["description", "file_path", "path", "command", "pattern", "query", "url", "title", "name", "subject"];
  const texts = [...named.map((name) => fields[name]), ...Object.values(fields)];
  const text = String(texts.find((value) => typeof value === "string" && value) ?? "");
  const [first = "", ...more] = text.trim().split("\n", 2);
  const isCut = more.length > 0 || first.length > summaryLength;
  // An operator at the end of the first line of a command says nothing without the second one.
  const line = more.length > 0 ? first.replace(/\s*(&&|\|\|?|;)?\s*\\?\s*$/, "") : first;
  return isCut ? `${line.slice(0, summaryLength)} …` : line;
}

function Code({ id, text, language }: { id: string; text: string; language?: string | undefined }) {
  return (
    <Clipped id={`${id} input`} label="Input" text={text} lines={inputLines}>
      {(shown) => <Highlighted text={shown} language={language} />}
    </Clipped>
  );
}
