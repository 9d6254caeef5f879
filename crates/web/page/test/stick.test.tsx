import { act, fireEvent, render, screen } from "@testing-library/react";
import { useRef } from "react";
import { beforeEach, expect, test } from "vitest";

import { nextFollowing, useStickToEnd } from "../src/conversation/stick.ts";

/** A list of 400 pixels, of as many rows of 100 pixels as are given. */
function List({ rows }: { rows: number }) {
  const list = useRef<HTMLDivElement>(null);
  const stick = useStickToEnd(list, rows);
  return (
    <>
      <div ref={list} data-testid="list" data-rows={rows}>
        <div />
      </div>
      <output>{stick.following ? "following" : "away"}</output>
      <button type="button" onClick={stick.toEnd}>
        To the end
      </button>
    </>
  );
}

beforeEach(() => {
  Object.defineProperties(HTMLElement.prototype, {
    clientHeight: { configurable: true, get: () => 400 },
    scrollHeight: {
      configurable: true,
      get(this: HTMLElement) {
        return Number(this.dataset.rows ?? 0) * 100;
      },
    },
  });
});

const list = () => screen.getByTestId("list");

function scrollTo(top: number, byReader: boolean) {
  if (byReader) fireEvent.wheel(list());
  list().scrollTop = top;
  fireEvent.scroll(list());
}

test("the list follows its end", () => {
  const { rerender } = render(<List rows={10} />);
  expect(list().scrollTop).toBe(1000);
  rerender(<List rows={20} />);
  expect(list().scrollTop).toBe(2000);
});

test("it stays where the reader has scrolled up to, and offers the way back", () => {
  const { rerender } = render(<List rows={20} />);
  scrollTo(300, true);
  expect(screen.getByText("away")).toBeTruthy();
  rerender(<List rows={21} />);
  expect(list().scrollTop).toBe(300);
  act(() => screen.getByText("To the end").click());
  expect(list().scrollTop).toBe(2100);
  expect(screen.getByText("following")).toBeTruthy();
});

test("a turn of the wheel up ends it before the list has scrolled, however quick the output is", () => {
  const { rerender } = render(<List rows={20} />);
  fireEvent.wheel(list(), { deltaY: -100 });
  list().scrollTop = 1900;
  rerender(<List rows={25} />);
  expect(list().scrollTop).toBe(1900);
  expect(screen.getByText("away")).toBeTruthy();
});

test("what fits into the list is not scrolled", () => {
  render(<List rows={4} />);
  fireEvent.wheel(list(), { deltaY: -100 });
  expect(screen.getByText("following")).toBeTruthy();
});

test("a reader who scrolls back to the end follows again", () => {
  render(<List rows={20} />);
  scrollTo(300, true);
  scrollTo(1590, true);
  expect(screen.getByText("following")).toBeTruthy();
});

test("rows that move by themselves do not end it", () => {
  const { rerender } = render(<List rows={20} />);
  fireEvent.scroll(list());
  list().dataset.rows = "15";
  scrollTo(1000, false);
  expect(screen.getByText("following")).toBeTruthy();
  rerender(<List rows={15} />);
  expect(list().scrollTop).toBe(1500);
});

test("a search of the browser that moves up is the reader's", () => {
  render(<List rows={20} />);
  fireEvent.scroll(list());
  scrollTo(1000, false);
  expect(screen.getByText("away")).toBeTruthy();
});

test("only the reader ends it, and the end begins it", () => {
  expect(nextFollowing(true, { distance: 500, byReader: true })).toBe(false);
  expect(nextFollowing(true, { distance: 500, byReader: false })).toBe(true);
  expect(nextFollowing(false, { distance: 500, byReader: false })).toBe(false);
  expect(nextFollowing(false, { distance: 10, byReader: true })).toBe(true);
});
