import { TokenrailError } from "@tokenrail/client";
import { type ComponentProps, useEffect, useId, useRef } from "react";

import { useText } from "../prompt/draft.ts";
import { draftOf, type LaunchField } from "./again.ts";

interface Props extends Omit<ComponentProps<"input">, "name"> {
  readonly label: string;
  readonly name: LaunchField;
  /** The values that are offered. */
  readonly suggested?: readonly string[];
  /** What is wrong with the value. */
  readonly problem?: string | undefined;
  /** Whether the server may need a value. */
  readonly isRequired?: boolean;
  /** Whether it has a row of its own, for a long value. */
  readonly isLong?: boolean;
}

/** A field that the server has a default for, unless it says that it is required. */
export function OptionalField({ label, name, suggested = [], problem, isRequired = false, isLong = false, ...input }: Props) {
  const [value, change] = useText(draftOf(name));
  const [list, problemId] = [useId(), useId()];
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (problem) field.current?.focus();
  }, [problem]);
  return (
    <div className={isLong ? "field long" : "field"}>
      <label className="field">
        <span>
          {label} {isRequired || <em>optional</em>}
        </span>
        <input
          ref={field}
          name={name}
          autoComplete="off"
          list={suggested.length > 0 ? list : undefined}
          value={value}
          aria-invalid={problem !== undefined || undefined}
          aria-describedby={problem && problemId}
          onChange={({ target }) => change(() => target.value)}
          {...input}
        />
      </label>
      {suggested.length > 0 && (
        <datalist id={list}>
          {suggested.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
      {problem && (
        <p id={problemId} className="field-problem" role="alert" data-testid={`problem-${name}`}>
          {problem}
        </p>
      )}
    </div>
  );
}

/** What is wrong with the folder that was sent with a launch, if that is why the server has refused the launch. */
export function folderProblem(failure: Error | undefined, cwd: string): string | undefined {
  const isFolder = failure instanceof TokenrailError && (failure.code as string) === "cwd_not_allowed";
  if (!isFolder || !cwd.trim()) return undefined;
  return `The folder ${cwd.trim()} does not exist, or agents are not allowed to work in it. Create the folder if it is missing. To allow it, run this on the server: tokenrail allow ${quoted(cwd.trim())}`;
}

/** As a shell reads it. */
function quoted(path: string): string {
  return /^[\w./~+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}
