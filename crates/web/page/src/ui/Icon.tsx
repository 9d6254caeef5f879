/** Icons on a grid of 16 by 16, with a line width of 1.5, in the colour of the surrounding text. */
const paths = {
  archive: "M2 3h12v3H2zM3 6v7.5h10V6M6.5 9h3",
  alert: "M8 2 14.5 13.5h-13L8 2ZM8 6.5v3M8 11.5v.1",
  arrowDown: "M8 3v10M3.5 8.5 8 13l4.5-4.5",
  arrowUp: "M8 13V3M3.5 7.5 8 3l4.5 4.5",
  braces:
    "M6 2.5H5c-1 0-1.5.5-1.5 1.5v2c0 1-.5 2-1.5 2 1 0 1.5 1 1.5 2v2c0 1 .5 1.5 1.5 1.5h1M10 2.5h1c1 0 1.5.5 1.5 1.5v2c0 1 .5 2 1.5 2-1 0-1.5 1-1.5 2v2c0 1-.5 1.5-1.5 1.5h-1",
  check: "m3 8.5 3.5 3.5L13 4.5",
  chevron: "m6 3.5 4.5 4.5L6 12.5",
  close: "m3.5 3.5 9 9M12.5 3.5l-9 9",
  command: "M2.5 3h11v10h-11zM5 6.3l1.7 1.7L5 9.7M8.5 10h2.5",
  copy: "M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1",
  cross: "m4.5 4.5 7 7M11.5 4.5l-7 7",
  download: "M8 2.5v8M4.5 7 8 10.5 11.5 7M2.5 13.5h11",
  filter: "M2 3.5h12L9.5 9v3.5l-3 1.5V9L2 3.5Z",
  image: "M2 3h12v10H2zM2 11l3.5-3.5L9 11l2-2 3 3M10.5 6.2h.1",
  keyboard: "M1.5 4h13v8.5h-13zM4 6.8h.1M7 6.8h.1M10 6.8h.1M12.5 6.8h.1M4.5 10h7",
  leave: "M9.5 2.5h-6v11h6M6.5 8h7M11 5.5 13.5 8 11 10.5",
  more: "M2.8 8h1.4M7.3 8h1.4M11.8 8h1.4",
  menu: "M2.5 4h11M2.5 8h11M2.5 12h11",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5Z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  pin: "M5.5 2.5h5M6.5 2.5v4L4 9.5h8L9.5 6.5v-4M8 9.5v4.5",
  play: "M4.5 3v10l8-5-8-5Z",
  plus: "M8 3v10M3 8h10",
  question: "M8 1.8a6.2 6.2 0 1 1 0 12.4A6.2 6.2 0 0 1 8 1.8ZM6.2 6.4a1.9 1.9 0 1 1 2.6 1.8c-.5.2-.8.6-.8 1.2v.2M8 11.6v.1",
  replay: "M3 3.5v3.5h3.5M3.4 7A5 5 0 1 1 3 9",
  screen: "M2 3h12v8H2zM5.5 13.5h5",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9ZM10.5 10.5l3 3",
  select: "M2.5 2.5h11v11h-11zM5 8.2 7.2 10.4 11 5.8",
  send: "M8 13.5v-11M3.5 7 8 2.5 12.5 7",
  spark: "M8 2v3M8 11v3M2 8h3M11 8h3M4 4l1.8 1.8M10.2 10.2 12 12M12 4l-1.8 1.8M5.8 10.2 4 12",
  stop: "M4 4h8v8H4z",
  sun: "M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6ZM8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M12.6 3.4l-.7.7M4.1 11.9l-.7.7",
  terminal: "m3 4.5 3.5 3.5L3 11.5M8 12h5",
  text: "M3 4h10M3 8h10M3 12h6",
  trash: "M2.5 4.5h11M6 4.5v-2h4v2M4 4.5l.7 9h6.6l.7-9",
} as const;

export type IconName = keyof typeof paths;

/** An icon that repeats the text beside it, or the label of its button. Screen readers ignore it. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={paths[name]} />
    </svg>
  );
}
