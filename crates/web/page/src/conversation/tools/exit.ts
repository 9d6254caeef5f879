import { fieldsOf } from "../../content/given.ts";
import { asText } from "../../content/text.ts";

/** The exit code of a command, if its result says it. */
export function exitCodeOf(output: unknown): number | undefined {
  const outer = fieldsOf(output);
  const inner = fieldsOf(outer.metadata);
  const codes = [outer.exitCode, outer.exit_code, outer.exit, inner.exitCode, inner.exit_code, inner.exit];
  const code = codes.find((each) => typeof each === "number");
  if (typeof code === "number") return code;
  const said = /^(?:Error: )?Exit code:? (-?\d{1,10})\b/i.exec(asText(output));
  return said ? Number(said[1]) : undefined;
}
