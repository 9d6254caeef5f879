// The page is in English only, so it formats numbers and dates by itself. A browser needs 10 to 20 ms to create a
// formatter of `Intl`, and five of them took a third of the time until the first paint.
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** 14:03:27 */
export function timeOf(iso: string): string {
  const date = new Date(iso);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
}

/** 22 Nov 2026, 14:03:27 */
export function dateOf(iso: string): string {
  const date = new Date(iso);
  return `${dayOf(date)} ${date.getFullYear()}, ${timeOf(iso)}`;
}

/** 22 Nov, 14:03 */
export function shortDateOf(iso: string): string {
  return `${dayOf(new Date(iso))}, ${timeOf(iso).slice(0, 5)}`;
}

function dayOf(date: Date): string {
  return `${date.getDate()} ${months[date.getMonth()]}`;
}

/**
 * Turns a message of the server into a sentence. The server's messages begin with a lower-case letter and have no full
 * stop.
 */
export function sentence(text: string): string {
  const end = /[.!?…]$/.test(text) ? "" : ".";
  return text.charAt(0).toUpperCase() + text.slice(1) + end;
}

/** 12,345 */
export function count(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ",");
}

const units = ["", "K", "M", "B", "T"] as const;

/** 12.3K */
export function compact(number: number): string {
  let [value, unit] = [number, 0];
  // A value that would be rounded to 1000 is shown as 1 of the next unit.
  for (; value >= 999.5 && unit < units.length - 1; unit++) value /= 1_000;
  return `${Number(value.toFixed(value < 99.95 && unit > 0 ? 1 : 0))}${units[unit]}`;
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

/** 12 s, 4 min 05 s, 1 h 02 min: until something happens, so whole seconds are rounded up. */
export function remaining(milliseconds: number): string {
  const seconds = Math.ceil(milliseconds / 1000);
  return seconds < 60 ? `${seconds} s` : duration(seconds * 1000);
}

/** 40 s, 9 min, 2 h: a remaining time, in one unit. */
export function wait(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  return seconds < 5_400 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
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

/** 640 B, 12 kB, 1.4 MB */
export function fileSize(bytes: number): string {
  if (bytes < 1_000) return `${Math.round(bytes)} B`;
  return bytes < 1_000_000 ? `${Math.round(bytes / 1_000)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** $0.0223, $1.50 */
export function cost(dollars: number): string {
  return `$${dollars.toFixed(dollars < 1 ? 4 : 2)}`;
}
