// Each of these takes a browser some milliseconds to make, and the first picture needs hardly any of them.
const day = once(() => new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" }));
const shortDay = once(() => new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" }));
const whole = once(() => new Intl.NumberFormat(undefined));
const short = once(() => new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 }));

function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

/** 14:03:27 */
export function timeOf(iso: string): string {
  const date = new Date(iso);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
}

export function dateOf(iso: string): string {
  return day().format(new Date(iso));
}

/** Nov 22, 14:03 */
export function shortDateOf(iso: string): string {
  return `${shortDay().format(new Date(iso))}, ${timeOf(iso).slice(0, 5)}`;
}

/** The server says its sentences without a capital, to be put after a colon. */
export function sentence(text: string): string {
  const end = /[.!?…]$/.test(text) ? "" : ".";
  return text.charAt(0).toUpperCase() + text.slice(1) + end;
}

/** 12,345 */
export function count(number: number): string {
  return number < 1_000 ? String(number) : whole().format(number);
}

/** 12.3K */
export function compact(number: number): string {
  return number < 1_000 ? String(number) : short().format(number);
}

/** 1 event, 2 events */
export function counted(number: number, thing: string): string {
  return `${count(number)} ${thing}${number === 1 ? "" : "s"}`;
}

/** 0.8 s, 12.3 s, 4 min 05 s, 1 h 02 min */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${two(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${two(minutes % 60)} min`;
}

function two(number: number): string {
  return String(Math.floor(number)).padStart(2, "0");
}

/** How long ago that was: now, 3 min, 2 h, 4 d. */
export function since(iso: string, now: number): string {
  const seconds = Math.max(0, now - Date.parse(iso)) / 1000;
  if (seconds < 60) return "now";
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** $0.0223, $1.50 */
export function cost(dollars: number): string {
  return `$${dollars.toFixed(dollars < 1 ? 4 : 2)}`;
}
