import { act, fireEvent, render, screen } from "@testing-library/react";
import { useRef } from "react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { meant, nextFollowing, useStickToEnd } from "../src/conversation/stick.ts";

/** A list of 400 pixels, of as many rows of 100 pixels as are given. */
function List({ rows, request }: { rows: number; request?: number }) {
  const list = useRef<HTMLDivElement>(null);
  const stick = useStickToEnd(list, rows);
  return (
    <>
      <div ref={list} data-testid="list" data-rows={rows}>
        <div />
        {request !== undefined && (
          <div className="row" data-sequence="7" data-at={request}>
            <div className="question" data-state="open" />
          </div>
        )}
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

afterEach(() => vi.restoreAllMocks());

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
  const before = { top: 1600, height: 2000 };
  const seen = 400;
  const higher = { top: 1100, height: 2100 };
  expect(nextFollowing(true, { before, now: higher, seen, byGesture: true })).toBe(false);
  expect(nextFollowing(true, { before, now: higher, seen, byGesture: false })).toBe(true);
  expect(nextFollowing(false, { before, now: higher, seen, byGesture: false })).toBe(false);
  expect(nextFollowing(false, { before: higher, now: { top: 1690, height: 2100 }, seen, byGesture: false })).toBe(true);
});

test("a list that was pinned to its end just before a turn of the wheel does not follow for that", () => {
  const { rerender } = render(<List rows={20} />);
  rerender(<List rows={25} />);
  fireEvent.wheel(list(), { deltaY: -100 });
  // The news of its own scroll to the end come only now.
  fireEvent.scroll(list());
  expect(screen.getByText("away")).toBeTruthy();
  list().scrollTop -= 20;
  fireEvent.scroll(list());
  expect(screen.getByText("away"), "the first step of a smooth scroll is near the end").toBeTruthy();
  // The list keeps what is seen in place while a row above it grows: that moves it down, and is not the reader's.
  list().dataset.rows = "26";
  list().scrollTop = 2560;
  fireEvent.scroll(list());
  expect(screen.getByText("away")).toBeTruthy();
  rerender(<List rows={26} />);
  expect(list().scrollTop).toBe(2560);
});

test("a turn of the wheel to the end as it is follows an end that runs on", () => {
  const { rerender } = render(<List rows={20} />);
  fireEvent.wheel(list(), { deltaY: -900 });
  list().scrollTop = 700;
  fireEvent.wheel(list(), { deltaY: 500 });
  expect(screen.getByText("away")).toBeTruthy();
  fireEvent.wheel(list(), { deltaY: 900 });
  expect(screen.getByText("following")).toBeTruthy();
  rerender(<List rows={40} />);
  expect(list().scrollTop).toBe(4000);
  // It is told of the scroll when more has come.
  list().dataset.rows = "50";
  fireEvent.scroll(list());
  expect(screen.getByText("following")).toBeTruthy();
});

test("lines and pages of the wheel, keys and fingers do so too", () => {
  render(<List rows={20} />);
  const away = () => {
    fireEvent.wheel(list(), { deltaY: -900 });
    list().scrollTop = 1300;
    expect(screen.getByText("away")).toBeTruthy();
  };
  const back = () => expect(screen.getByText("following")).toBeTruthy();
  list().scrollTop = 1300;
  away();
  fireEvent.wheel(list(), { deltaY: 20, deltaMode: 1 });
  back();
  away();
  fireEvent.wheel(list(), { deltaY: 1, deltaMode: 2 });
  back();
  away();
  fireEvent.keyDown(list(), { key: "PageDown" });
  back();
  fireEvent.keyDown(list(), { key: "PageUp" });
  expect(screen.getByText("away")).toBeTruthy();
  list().scrollTop = 1300;
  fireEvent.touchStart(list(), { touches: [{ clientY: 390 }] });
  fireEvent.touchMove(list(), { touches: [{ clientY: 90 }] });
  back();
  fireEvent.touchMove(list(), { touches: [{ clientY: 120 }] });
  expect(screen.getByText("away")).toBeTruthy();
});

test("what scrolls inside of the list is not the list", () => {
  render(<List rows={20} />);
  const inner = list().firstElementChild as HTMLElement;
  inner.dataset.rows = "9";
  inner.style.overflowY = "auto";
  inner.scrollTop = 100;
  fireEvent.wheel(inner, { deltaY: -100 });
  expect(screen.getByText("following")).toBeTruthy();
  inner.scrollTop = 0;
  fireEvent.wheel(inner, { deltaY: -100 });
  expect(screen.getByText("away"), "but it goes on with the list at its own beginning").toBeTruthy();
});

test("to ask for the end is to come to where it was when the gesture was made", () => {
  expect(meant(false, 200, { top: 1000, height: 2000 }, 400)).toBe(false);
  expect(meant(false, 600, { top: 1000, height: 2000 }, 400)).toBe(true);
  expect(meant(true, -1, { top: 1600, height: 2000 }, 400)).toBe(false);
  expect(meant(true, -1, { top: 0, height: 300 }, 400)).toBe(true);
});

test("a fling that comes to where the end was follows", () => {
  const before = { top: 1200, height: 2000 };
  expect(nextFollowing(false, { before, now: { top: 1580, height: 2300 }, seen: 400, byGesture: true })).toBe(true);
  expect(nextFollowing(false, { before, now: { top: 1580, height: 2300 }, seen: 400, byGesture: false })).toBe(false);
});

/** Has the row of a request be where it says, below the beginning of the list. */
function requestsHavePlaces() {
  vi.spyOn(Element.prototype, "getBoundingClientRect").mockImplementation(function (this: Element) {
    const at = (this as HTMLElement).dataset["at"];
    return new DOMRect(0, at === undefined ? 0 : Number(at) - list().scrollTop, 100, 100);
  });
}

test("a request that is higher than the list is shown from its top, also if rows above it get higher", () => {
  requestsHavePlaces();
  const { rerender } = render(<List rows={10} />);
  rerender(<List rows={16} request={1000} />);
  expect(list().scrollTop).toBe(1000);
  fireEvent.scroll(list());
  rerender(<List rows={17} request={1100} />);
  expect(list().scrollTop).toBe(1100);
  expect(screen.getByText("following")).toBeTruthy();
  rerender(<List rows={12} />);
  expect(list().scrollTop, "it is answered").toBe(1200);
});

test("a conversation that is opened with such a request shows its top", () => {
  requestsHavePlaces();
  render(<List rows={16} request={1000} />);
  expect(list().scrollTop).toBe(1000);
});

test("the reader scrolls on from the top of the request, and follows again from its end", () => {
  requestsHavePlaces();
  const { rerender } = render(<List rows={16} request={1000} />);
  fireEvent.wheel(list(), { deltaY: 50 });
  list().scrollTop = 1050;
  fireEvent.scroll(list());
  expect([list().scrollTop, screen.getByRole("status").textContent]).toEqual([1050, "away"]);
  scrollTo(1195, true);
  expect(screen.getByText("following")).toBeTruthy();
  rerender(<List rows={17} request={1000} />);
  expect(list().scrollTop).toBe(1700);
});

test("a reader who comes down to the end of a request is not taken back to its top", () => {
  requestsHavePlaces();
  const { rerender } = render(<List rows={20} />);
  scrollTo(300, true);
  rerender(<List rows={26} request={2000} />);
  expect(list().scrollTop).toBe(300);
  scrollTo(2195, true);
  rerender(<List rows={27} request={2000} />);
  expect(list().scrollTop).toBe(2700);
});

test("a request that fits is shown to its end", () => {
  requestsHavePlaces();
  render(<List rows={14} request={1000} />);
  expect(list().scrollTop).toBe(1400);
});
