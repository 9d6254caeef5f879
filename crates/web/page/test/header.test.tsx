import { TokenrailProvider } from "@tokenrail/client/react";
import { act, cleanup, fireEvent, render, screen, within } from "@testing-library/react";
import { expect, test, vi } from "vitest";

import { Header } from "../src/conversation/Header.tsx";
import { FakeClient } from "./fake-client.ts";

test("on a phone, the open sheet says why an action failed", async () => {
  const media = vi.spyOn(window, "matchMedia").mockReturnValue({
    ...{ matches: true, addEventListener: () => {}, removeEventListener: () => {} },
  } as unknown as MediaQueryList);
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  const edit = vi.fn(() => Promise.reject(new Error("the database is busy")));
  const fake = Object.assign(new FakeClient(), { edit });
  const nothing = () => undefined;
  const props = { items: [], head: 0, plain: false, notices: false, onPlain: nothing, onNotices: nothing, onSearch: nothing };
  render(
    <TokenrailProvider client={fake.client}>
      <Header agent={fake.agentNow} {...props} onOpen={nothing} />
    </TokenrailProvider>,
  );
  fireEvent.click(screen.getByTestId("details"));
  const sheet = within(screen.getByTestId("sheet"));
  await act(async () => void fireEvent.click(sheet.getByTestId("toggle-archive")));
  expect(sheet.getByRole("alert").textContent).toContain("The database is busy.");
  media.mockRestore();
});

test("on a large screen, the header has few buttons, the others in a menu, and the end of the folder if that says something", () => {
  const fake = new FakeClient();
  const nothing = () => undefined;
  const props = { items: [], head: 0, plain: false, notices: false, onPlain: nothing, onNotices: nothing, onSearch: nothing };
  const agent = { ...fake.agentNow, id: "0193", status: "completed", cwd: "/data/agents/shop" } as typeof fake.agentNow;
  render(
    <TokenrailProvider client={fake.client}>
      <Header agent={agent} {...props} onReplay={nothing} onOpen={nothing} />
    </TokenrailProvider>,
  );
  const isInMenu = (button: Element) => button.closest("dialog") !== null;
  const buttons = [...screen.getByRole("group", { name: "Actions" }).querySelectorAll("button")];
  const names = (inMenu: boolean) => buttons.filter((each) => isInMenu(each) === inMenu).map((each) => each.getAttribute("aria-label"));
  expect(names(false)).toEqual(["Search", "Replay in this browser", "More"]);
  expect(names(true)).toEqual(["Close", "Export", "Plain text", "Notices", "Developer details", "Launch again", "Pin", "Archive", "Delete"]);
  expect(screen.getByTitle("/data/agents/shop").textContent).toBe("Foldershop");
  cleanup();
  const id = "01a215ef-8e4d-7000-8000-000000000000";
  render(
    <TokenrailProvider client={fake.client}>
      <Header agent={{ ...agent, id, cwd: `/data/work/${id}` }} {...props} onOpen={nothing} />
    </TokenrailProvider>,
  );
  expect(screen.getByTitle(`/data/work/${id}`).textContent).toBe("Foldera folder of its own");
});

test("an agent is stopped from the composer, from the menu, and from the header if there is no composer", () => {
  const fake = new FakeClient();
  const nothing = () => undefined;
  const props = { items: [], head: 0, plain: false, notices: false, onPlain: nothing, onNotices: nothing, onSearch: nothing };
  const view = (canWrite: boolean) => (
    <TokenrailProvider client={fake.client}>
      <Header agent={fake.agentNow} {...props} canWrite={canWrite} onOpen={nothing} />
    </TokenrailProvider>
  );
  const { rerender } = render(view(true));
  expect(screen.getByTestId("cancel").closest("dialog")).not.toBeNull();
  rerender(view(false));
  expect(screen.getByTestId("cancel").closest("dialog")).toBeNull();
});

test("the header says up to which event everything is saved", () => {
  const fake = new FakeClient();
  const nothing = () => undefined;
  const props = { items: [], head: 1702, plain: false, notices: false, onPlain: nothing, onNotices: nothing, onSearch: nothing };
  render(
    <TokenrailProvider client={fake.client}>
      <Header agent={fake.agentNow} {...props} onOpen={nothing} />
    </TokenrailProvider>,
  );
  expect(screen.getByText("Saved").parentElement?.textContent).toBe("Saved up to event 1,702");
});
