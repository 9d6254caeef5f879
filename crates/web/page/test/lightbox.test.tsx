import { fireEvent, screen, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { sizeOfData } from "../src/content/image-size.ts";
import { Told } from "./events.ts";
import { png } from "./png.ts";
import { showRows } from "./show.tsx";

const block = (data: string) => ({ type: "image", source: { type: "base64", media_type: "image/png", data } });

beforeEach(() => {
  vi.stubGlobal("createImageBitmap", vi.fn(() => new Promise(() => undefined)));
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
    this.dispatchEvent(new Event("close"));
  };
});

afterEach(() => vi.unstubAllGlobals());

test("a picture opens large, and can be closed", () => {
  showRows(new Told().call("c", "mcp__x__shot", {}).gave("c", [block(png(1_200, 800))]));
  expect(screen.queryByTestId("lightbox")).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "Enlarge the image: PNG, 1,200 × 800, 60 B" }));
  const dialog = screen.getByRole<HTMLDialogElement>("dialog", { name: "PNG, 1,200 × 800, 60 B" });
  expect(dialog.open).toBe(true);
  expect(within(dialog).getByRole("img", { name: "Image: PNG, 1,200 × 800, 60 B" })).toBeTruthy();
  fireEvent.click(within(dialog).getByRole("button", { name: "Close" }));
  expect(screen.queryByTestId("lightbox")).toBeNull();
});

test("a small picture opens at no more than twice its size", () => {
  showRows(new Told().call("c", "mcp__x__shot", {}).gave("c", [block(png(64, 40))]));
  fireEvent.click(screen.getByRole("button", { name: /^Enlarge/ }));
  const { maxWidth, maxHeight } = within(screen.getByRole("dialog")).getByRole("img").style;
  expect([maxWidth, maxHeight]).toEqual(["128px", "80px"]);
});

test.each([
  ["one picture has its size", [block(png(640, 480))], "640 × 480"],
  ["pictures are counted", [block(png(1, 1)), block(png(2, 2))], "2 images"],
  ["a picture whose size is unknown is counted", [block("%%%")], "1 image"],
])("of a call that found pictures, %s", (_, content, fact) => {
  showRows(new Told(1).call("c", "Read", { file_path: "a.png" }).gave("c", content));
  expect(document.querySelector(".tool-head .fact")?.textContent).toBe(fact);
});

test("the size of an image is read from its beginning", () => {
  expect(sizeOfData(`${png(30, 20)}${"A".repeat(70_000)}%%%`)).toEqual({ width: 30, height: 20 });
});
