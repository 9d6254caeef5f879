import { memo, type ReactNode } from "react";

/**
 * The escape sequences that a terminal interprets instead of printing: colours (`CSI … m`), other control sequences,
 * titles and links (`OSC … BEL`), strings for devices, and two-byte escapes. An escape sequence that is cut off at the
 * end is removed too.
 */
const escapes =
  /\u001b\[([0-9;:]*)m|(?:\u001b\[|\u009b)[0-?]*[ -/]*(?:[@-~]|$)|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|\u001b[PX^_][^\u001b]*(?:\u001b\\|$)|\u001b[ -/]*(?:[0-~]|$)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f]/g;

const colours = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

interface Style {
  readonly colour?: string | undefined;
  readonly bold?: boolean;
  readonly dim?: boolean;
  readonly underlined?: boolean;
}

export interface Span extends Style {
  readonly text: string;
}

/** Shows text as a terminal would, with the named colours. */
export const Ansi = memo(function Ansi({ text }: { readonly text: string }): ReactNode {
  if (!hasControls(text)) return text;
  return spansOf(text).map((span, index) => {
    const names = [
      span.colour && `ansi-${span.colour}`,
      span.bold && "ansi-bold",
      span.dim && "ansi-dim",
      span.underlined && "ansi-underlined",
    ];
    const className = names.filter(Boolean).join(" ");
    return className ? (
      <span key={index} className={className}>
        {span.text}
      </span>
    ) : (
      span.text
    );
  });
});

function hasControls(text: string): boolean {
  return text.search(escapes) >= 0;
}

export function spansOf(text: string): Span[] {
  const spans: Span[] = [];
  let style: Style = {};
  let at = 0;
  for (const match of text.matchAll(escapes)) {
    if (at < match.index) spans.push({ ...style, text: text.slice(at, match.index) });
    if (match[1] !== undefined) style = styled(style, match[1]);
    at = match.index + match[0].length;
  }
  if (at < text.length) spans.push({ ...style, text: text.slice(at) });
  return spans;
}

function styled(style: Style, codes: string): Style {
  const numbers = codes.split(/[;:]/).map(Number);
  let now = style;
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at] ?? 0;
    // Colours that are given by number or by components are not shown.
    if (code === 38 || code === 48) at += numbers[at + 1] === 5 ? 2 : 4;
    else now = changed(now, code);
  }
  return now;
}

function changed(style: Style, code: number): Style {
  if (code === 0) return {};
  if (code === 1) return { ...style, bold: true };
  if (code === 2) return { ...style, dim: true };
  if (code === 4) return { ...style, underlined: true };
  if (code === 22) return { ...style, bold: false, dim: false };
  if (code === 24) return { ...style, underlined: false };
  if (code === 39) return { ...style, colour: undefined };
  const colour = colours[code - (code >= 90 ? 90 : 30)];
  return colour ? { ...style, colour } : style;
}
