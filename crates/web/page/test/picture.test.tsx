import { applyEvents, emptyTranscript } from "@tokenrail/client";
import { render, screen } from "@testing-library/react";
import { afterEach, expect, test, vi } from "vitest";

import { sizeOfImage } from "../src/content/image-size.ts";
import { KeepOpen } from "../src/conversation/kept.tsx";
import { textOf } from "../src/conversation/row-text.ts";
import { rowsOf } from "../src/conversation/rows.ts";
import { RowView } from "../src/conversation/RowView.tsx";
import { Told } from "./events.ts";
import { png } from "./png.ts";

const rowsAfter = (content: unknown) =>
  rowsOf(applyEvents(emptyTranscript, new Told().call("c", "mcp__x", {}).gave("c", content).events).items);

function show(content: unknown) {
  const rows = rowsAfter(content);
  return render(<KeepOpen>{rows.map((row) => <RowView key={row.key} row={row} plain={false} />)}</KeepOpen>);
}

const block = (data: string, media_type = "image/png") => ({ type: "image", source: { type: "base64", media_type, data } });

function decoding(result: Promise<unknown>) {
  vi.stubGlobal("createImageBitmap", vi.fn(() => result));
}

afterEach(() => vi.unstubAllGlobals());

test.each([
  ["Claude", block(png(80, 60))],
  ["MCP", { type: "image", mimeType: "image/png", data: png(80, 60) }],
  ["ACP", { type: "content", content: { type: "image", mimeType: "image/png", data: png(80, 60) } }],
])("an image of %s is a picture with its type and size, and its text is not shown", (_, image) => {
  decoding(new Promise(() => undefined));
  const { container } = show([{ type: "text", text: "The page" }, image]);
  expect(screen.getByRole("img", { name: "Image: PNG, 80 × 60, 60 B" })).toBeTruthy();
  expect(container.textContent).toContain("PNG, 80 × 60, 60 B");
  expect(screen.getByLabelText("Output").textContent).toBe("The page");
  expect(container.textContent).not.toContain("iVBOR");
  expect(rowsAfter([image]).map(textOf).join()).not.toContain("iVBOR");
});

test("a big picture is drawn smaller", () => {
  decoding(new Promise(() => undefined));
  show([block(png(8_000, 4_000))]);
  const { width, height } = screen.getByRole<HTMLCanvasElement>("img");
  expect([width, height]).toEqual([2_000, 1_000]);
});

test.each([
  ["is no base64", block("%%%")],
  ["is no image", block(btoa("x".repeat(100)))],
  ["is too big", block(png(60_000, 60_000))],
  ["is empty", block(png(0, 10))],
  ["may contain scripts", block(btoa("<svg/>".repeat(20)), "image/svg+xml")],
])("an image that %s is one line, and is not decoded", (_, image) => {
  decoding(Promise.resolve());
  show([image]);
  expect(screen.getByTestId("no-picture").textContent).toMatch(/^This image cannot be shown \(/);
  expect(createImageBitmap).not.toHaveBeenCalled();
});

test("an image that cannot be decoded is one line", async () => {
  decoding(Promise.reject(new Error("broken")));
  show([block(png(8, 8))]);
  expect((await screen.findByTestId("no-picture")).textContent).toBe("This image cannot be shown (PNG, 60 B).");
});

test("an image in a message is a picture", () => {
  decoding(new Promise(() => undefined));
  const { items } = applyEvents(emptyTranscript, new Told().message("m", [block(png(8, 8))]).events);
  render(<KeepOpen>{rowsOf(items).map((row) => <RowView key={row.key} row={row} plain={false} />)}</KeepOpen>);
  expect(screen.getByRole("img", { name: /^Image: PNG/ })).toBeTruthy();
});

const bytes = (hex: string) => Uint8Array.from(hex.padEnd(80, "0").match(/../g) ?? [], (pair) => parseInt(pair, 16));

test.each([
  ["GIF", "47494638396104000300", 4, 3],
  ["JPEG", "ffd8ffe000104a46494600010100000100010000ffc0001108000300040301", 4, 3],
  ["WebP, simple", "524946460000000057454250565038200000000000000000000004000300", 4, 3],
  ["WebP, lossless", "5249464600000000574542505650384c000000002f03800000", 4, 3],
  ["WebP, extended", "5249464600000000574542505650385800000000000000000300000200000", 4, 3],
])("the size of a %s image is read from its first bytes", (_, hex, width, height) => {
  expect(sizeOfImage(bytes(hex))).toEqual({ width, height });
});
