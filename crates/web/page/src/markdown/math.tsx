// Simple mathematics in a text, such as `$d_n = d_0 \cdot 2^{n}$`, as text with subscripts and superscripts.
import type { ReactNode } from "react";

const signs: Readonly<Record<string, string>> = {
  ...{ cdot: "·", times: "×", div: "÷", pm: "±", le: "≤", leq: "≤", ge: "≥", geq: "≥", ne: "≠", neq: "≠", approx: "≈", sim: "∼" },
  ...{ to: "→", rightarrow: "→", infty: "∞", sum: "∑", prod: "∏", in: "∈", ldots: "…", dots: "…", log: "log", ln: "ln", min: "min" },
  ...{ max: "max", alpha: "α", beta: "β", gamma: "γ", delta: "δ", epsilon: "ε", eta: "η", theta: "θ", lambda: "λ", mu: "μ", pi: "π" },
  ...{ rho: "ρ", sigma: "σ", tau: "τ", phi: "φ", chi: "χ", omega: "ω", Delta: "Δ", Sigma: "Σ", Omega: "Ω" },
};

/** A formula stands between dollar signs, without spaces inside of them, and no letter or digit follows: `$5 and $10` is none. */
const formula = /\$\$([^$\n]{1,200})\$\$|\$(?!\s)([^$\n]{1,200}?)(?<!\s)\$(?!\w)/g;

/** A word, a sign, or a space: everything else is not simple. */
const part = /\\([A-Za-z]+) ?|([A-Za-z]+|\d+(?:\.\d+)?|[-+=<>()[\].,:;!/|'*·×≤≥≈→ ])|([_^])(?:\{([^{}]*)\}|([A-Za-z0-9]))/y;

/** The text with its formulas. What is not a simple formula stays as it was written. */
export function withMath(text: string): ReactNode {
  if (!text.includes("$")) return text;
  const result: ReactNode[] = [];
  let from = 0;
  for (const match of text.matchAll(formula)) {
    const source = match[1] ?? match[2] ?? "";
    const read = /[_^\\]/.test(source) ? readMath(source.trim()) : undefined;
    if (!read) continue;
    result.push(text.slice(from, match.index));
    result.push(
      <span key={match.index} className="math" title={match[0]}>
        {read}
      </span>,
    );
    from = match.index + match[0].length;
  }
  return from === 0 ? text : [...result, text.slice(from)];
}

/** `undefined` if something in it is not known. */
function readMath(source: string): ReactNode[] | undefined {
  const result: ReactNode[] = [];
  part.lastIndex = 0;
  let at = 0;
  while (at < source.length) {
    part.lastIndex = at;
    const match = part.exec(source);
    if (!match) return undefined;
    const [whole, command, plain, mark, group, single] = match;
    if (command !== undefined) {
      if (!Object.hasOwn(signs, command)) return undefined;
      const sign = signs[command] ?? "";
      result.push(/\s$/.test(whole) ? `${sign} ` : sign);
    } else if (plain !== undefined) result.push(plain);
    else {
      const inner = readMath(group ?? single ?? "");
      if (!inner || inner.length === 0) return undefined;
      result.push(mark === "_" ? <sub key={at}>{inner}</sub> : <sup key={at}>{inner}</sup>);
    }
    at += whole.length;
  }
  return result;
}
