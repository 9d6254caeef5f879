import { fireEvent, render, screen } from "@testing-library/react";
import { expect, test, vi } from "vitest";

import { Shortcuts, useKeyPair, useShortcut } from "../src/ui/shortcuts.tsx";

function Keys({ onSpace }: { readonly onSpace: () => void }) {
  useShortcut(" ", onSpace);
  return (
    <>
      <button type="button">Press</button>
      <a href="/#there">Go</a>
      <div tabIndex={0}>Nothing to press</div>
    </>
  );
}

test("a space presses the control that has the keyboard, and plays elsewhere", () => {
  const onSpace = vi.fn();
  render(<Keys onSpace={onSpace} />);
  // Whoever has not prevented it is told `true`.
  expect(fireEvent.keyDown(screen.getByRole("button"), { key: " " })).toBe(true);
  expect(fireEvent.keyDown(screen.getByRole("link"), { key: " " })).toBe(true);
  expect(onSpace).not.toHaveBeenCalled();
  expect(fireEvent.keyDown(screen.getByText("Nothing to press"), { key: " " })).toBe(false);
  expect(onSpace).toHaveBeenCalledOnce();
});

test("the list of keys has the one of the replay", () => {
  render(<Shortcuts />);
  expect(document.querySelector(".keys")?.textContent).toContain("SpacePlay or pause a replay");
});

test("no key acts behind an open dialog, except for the one that closes the list of keys", () => {
  const onSpace = vi.fn();
  render(<Keys onSpace={onSpace} />);
  const dialog = document.body.appendChild(document.createElement("dialog"));
  dialog.open = true;
  expect(fireEvent.keyDown(dialog, { key: " " })).toBe(true);
  dialog.remove();
  expect(onSpace).not.toHaveBeenCalled();
  expect(fireEvent.keyDown(window, { key: " " })).toBe(false);
});

test("two keys one after the other do something else than the second one alone", () => {
  const [pair, alone] = [vi.fn(), vi.fn()];
  function Pair() {
    useShortcut("n", alone);
    useKeyPair("g", "n", pair);
    return <input />;
  }
  render(<Pair />);
  const press = (key: string, on: Element | Window = window) => fireEvent.keyDown(on, { key });
  press("n");
  expect([pair.mock.calls.length, alone.mock.calls.length]).toEqual([0, 1]);
  press("g");
  press("n");
  expect([pair.mock.calls.length, alone.mock.calls.length]).toEqual([1, 1]);
  press("g");
  press("x");
  press("n");
  expect([pair.mock.calls.length, alone.mock.calls.length]).toEqual([1, 2]);
  press("g", screen.getByRole("textbox"));
  press("n", screen.getByRole("textbox"));
  expect([pair.mock.calls.length, alone.mock.calls.length]).toEqual([1, 2]);
});
