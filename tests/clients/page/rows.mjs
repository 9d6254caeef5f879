// Reads a conversation from its beginning to its end by scrolling: only visible rows are in the document.

/** Runs in the page. The texts are complete: folded texts are opened on the way. */
export async function readRows() {
  const list = document.querySelector("#events");
  const frames = async (count = 2) => {
    for (let frame = 0; frame < count; frame++) await new Promise((done) => requestAnimationFrame(done));
  };
  const textOf = (element) => element?.textContent ?? "";
  const wordsIn = (row) => textOf(row.querySelector(".words > :first-child"));
  const read = {
    prompt: (row) => textOf(row.querySelector(".prompt")),
    text: wordsIn,
    thinking: wordsIn,
    tool: (row) => row.querySelector(".tool-name").dataset.tool,
    error: (row) => textOf(row.querySelector(".plain")),
    result: (row) => row.querySelector("[data-outcome]").dataset.outcome,
    notice: textOf,
  };
  const readRow = (row) => {
    const { kind, sequence } = row.dataset;
    const state = row.querySelector("[data-testid=tool-card]")?.dataset.state;
    const output = textOf(row.querySelector('pre[aria-label=Output], pre[aria-label="Error output"]'));
    return { kind, sequence: Number(sequence), text: read[kind](row), state, output };
  };
  const rows = new Map();
  const look = async () => {
    // A group must be opened before the calls in it.
    for (let depth = 0; depth < 2; depth++) {
      for (const folded of list.querySelectorAll(":is(.thinking, .tool) > [aria-expanded=false]")) folded.click();
      await frames();
    }
    for (const item of list.querySelectorAll("[data-index]")) {
      const row = item.querySelector("[data-testid^=row-]");
      const calls = row.querySelectorAll("[data-testid=tool-group] > .tool-inner > [data-testid^=row-]");
      rows.set(Number(item.dataset.index), row.dataset.kind === "group" ? [...calls].map(readRow) : [readRow(row)]);
    }
    return Number(list.querySelector("[data-index]")?.getAttribute("aria-setsize") ?? 0);
  };
  list.dispatchEvent(new WheelEvent("wheel", { deltaY: -1 }));
  // Rows that are measured or unfolded on the way up move those below them down, so the first one may still be a little
  // further up.
  let size = 0;
  for (let tries = 0; tries < 50 && !rows.has(0); tries++) {
    list.scrollTop = 0;
    await frames(4);
    if (list.scrollTop === 0 && list.querySelector('[data-index="0"]')) size = await look();
  }
  while (list.scrollTop + list.clientHeight < list.scrollHeight - 1) {
    list.scrollTop += list.clientHeight / 2;
    await frames();
    size = await look();
  }
  const holes = Array.from({ length: size }, (_, index) => index).filter((index) => !rows.has(index));
  if (holes.length > 0) throw new Error(`no row is drawn for ${holes} of ${size}`);
  document.querySelector("[data-testid=to-end]")?.click();
  return [...rows].sort(([left], [right]) => left - right).flatMap(([, those]) => those);
}
