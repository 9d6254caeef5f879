import { type AgentType, applyEvents, emptyTranscript } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { act, cleanup, fireEvent, render, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { AgentId } from "../src/conversation/agent-id.ts";
import { Composer } from "../src/conversation/Composer.tsx";
import { KeepOpen } from "../src/conversation/kept.tsx";
import { Outbox, useOutbox } from "../src/conversation/outbox.ts";
import { rowsOf } from "../src/conversation/rows.ts";
import { RowView } from "../src/conversation/RowView.tsx";
import { LaunchForm } from "../src/launch/LaunchForm.tsx";
import { forgetAttached } from "../src/prompt/attached.ts";
import { Told } from "./events.ts";
import { FakeClient, away } from "./fake-client.ts";

/** The beginning of a PNG image of 8 by 6 pixels. */
const bytes = new Uint8Array(40);
bytes.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
new DataView(bytes.buffer).setUint32(16, 8);
new DataView(bytes.buffer).setUint32(20, 6);
const data = btoa(String.fromCharCode(...bytes));
const picture = (name = "shot.png") => new File([bytes], name, { type: "image/png" });
const svg = new File(["<svg/>"], "evil.svg", { type: "image/svg+xml" });

const typed = (images: boolean) =>
  [
    {
      type: "fake",
      can: { images },
      ...(images && { imageLimits: { images: 3, bytes: 500 } }),
      available: true,
      default: true,
      runner: "process",
      format: "x",
    },
  ] as unknown as AgentType[];

let fake: FakeClient;
beforeEach(() => {
  vi.stubGlobal("createImageBitmap", vi.fn(() => new Promise(() => undefined)));
  fake = new FakeClient();
  fake.agentTypes.mockResolvedValue(typed(true));
});
afterEach(() => {
  vi.unstubAllGlobals();
  forgetAttached();
  sessionStorage.clear();
});

function Page() {
  const outbox = useOutbox();
  return <Composer agent={fake.agentNow} send={(content, images) => outbox.send("a", content, images)} />;
}

const show = () =>
  act(async () =>
    render(
      <TokenrailProvider client={fake.client}>
        <Page />
      </TokenrailProvider>,
    ),
  );
const field = () => screen.getByLabelText<HTMLTextAreaElement>("Message to the agent");
const paste = (files: readonly File[], types = ["Files"]) =>
  act(async () => fireEvent.paste(field(), { clipboardData: { files, types } }));
const thumbnails = (count: number) => waitFor(() => expect(screen.queryAllByTestId("remove-image").length).toBe(count));
const write = (value: string) => fireEvent.change(field(), { target: { value } });
const submit = () => act(async () => void fireEvent.submit(screen.getByTestId("composer")));
const sent = { content: "What is this?", images: [{ mediaType: "image/png", data }] };
const lastSent = () => fake.send.mock.lastCall?.[1];

test("a pasted image is a thumbnail, is sent with the text, and is gone then", async () => {
  await show();
  await paste([picture()]);
  await thumbnails(1);
  expect(screen.getByRole("img", { name: "Image: PNG, 8 × 6, 40 B" })).toBeTruthy();
  write("What is this?");
  await submit();
  expect(lastSent()).toEqual(sent);
  await thumbnails(0);
});

test("images can be dropped and chosen too, and removed one by one", async () => {
  await show();
  await act(async () => fireEvent.drop(screen.getByTestId("composer"), { dataTransfer: { files: [picture("a.png")], types: ["Files"] } }));
  await thumbnails(1);
  expect(screen.getByTestId("attach")).toBeTruthy();
  await act(async () => fireEvent.change(screen.getByTestId("image-files"), { target: { files: [picture("b.png"), picture("c.png")] } }));
  await thumbnails(3);
  fireEvent.click(screen.getByRole("button", { name: "Remove the image b.png" }));
  const names = screen.getAllByTestId("remove-image").map((button) => button.getAttribute("aria-label"));
  expect(names).toEqual(["Remove the image a.png", "Remove the image c.png"]);
});

test("text that is pasted with its picture is pasted as text", async () => {
  await show();
  await paste([picture()], ["text/plain", "Files"]);
  await thumbnails(0);
});

test("a file that may contain scripts is not added, and the page says why", async () => {
  await show();
  await paste([svg, picture()]);
  await thumbnails(1);
  expect((await screen.findByRole("alert")).textContent).toContain("Only PNG, JPEG, GIF and WebP images can be added");
});

test("if the agent accepts no images, there is no button, and a pasted image gives a sentence", async () => {
  fake.agentTypes.mockResolvedValue(typed(false));
  await show();
  expect(screen.queryByTestId("attach")).toBeNull();
  await paste([picture()]);
  expect((await screen.findByRole("alert")).textContent).toContain("Agents of this type accept no images");
  await thumbnails(0);
});

test("images that are too large or too many are not added, and the page says why", async () => {
  await show();
  await paste([new File([new Uint8Array(900)], "large.png", { type: "image/png" })]);
  expect((await screen.findByRole("alert")).textContent).toContain("The image large.png is 900 B; the server accepts at most 500 B");
  await thumbnails(0);
  await paste([picture(), picture()]);
  await thumbnails(2);
  await paste([picture(), picture()]);
  expect((await screen.findByRole("alert")).textContent).toContain("A message can have at most 3 images");
  await thumbnails(2);
});

test("images that are too large together are not added, and the page says why", async () => {
  const [type] = typed(true);
  fake.agentTypes.mockResolvedValue([{ ...type!, imageLimits: { images: 8, bytes: 500, totalBytes: 100 } }]);
  await show();
  await paste([picture(), picture()]);
  await thumbnails(2);
  await paste([picture()]);
  const said = (await screen.findByRole("alert")).textContent;
  expect(said).toContain("Together, the images are 120 B; the server accepts at most 100 B in one message");
  await thumbnails(2);
});

test("a message with images is not uploaded again without end", async () => {
  fake.send.mockRejectedValue(away());
  const outbox = new Outbox(fake.client);
  await outbox.send("a", "What is this?", [{ mimeType: "image/png", data }]);
  for (let attempt = 0; attempt < 9; attempt += 1) {
    outbox.sendAll();
    await vi.waitFor(() => expect(outbox.get("a")?.isSending).toBeFalsy());
  }
  expect(outbox.get("a")?.refusal?.message).toContain("the message did not arrive");
  expect(fake.send.mock.calls.length).toBe(4);
});

test("a message that the server refuses keeps its images", async () => {
  fake.send.mockRejectedValue(new Error("too large"));
  await show();
  await paste([picture()]);
  await thumbnails(1);
  write("What is this?");
  await submit();
  await thumbnails(1);
  expect(field().value).toBe("What is this?");
});

test("a message that is not delivered is sent again with its images, but not after the page has lost them", async () => {
  fake.send.mockRejectedValueOnce(away());
  const outbox = new Outbox(fake.client);
  await outbox.send("a", "What is this?", [{ mimeType: "image/png", data }]);
  expect(outbox.get("a")?.content).toBe("What is this?");
  expect(sessionStorage.getItem("tokenrail-unsent")).not.toContain(data);
  const afterReload = new Outbox(fake.client).get("a");
  expect(afterReload?.refusal?.message).toContain("the images of this message were lost");
  outbox.sendAll();
  await vi.waitFor(() => expect(outbox.get("a")).toBeUndefined());
  expect(lastSent()).toEqual(sent);
});

test("a launch has the images, and they are gone after it", async () => {
  const launch = vi.fn((_body: unknown, _options: unknown) => Promise.resolve({ id: "new" }));
  const client = Object.assign(fake, { launch }).client;
  const form = () => (
    <TokenrailProvider client={client}>
      <LaunchForm client={client} types={typed(true)} onLaunched={() => undefined} />
    </TokenrailProvider>
  );
  await act(async () => render(form()));
  const prompt = screen.getByLabelText("Prompt");
  await act(async () => fireEvent.paste(prompt, { clipboardData: { files: [picture()], types: ["Files"] } }));
  await thumbnails(1);
  fireEvent.change(prompt, { target: { value: "Look" } });
  await act(async () => void fireEvent.submit(screen.getByTestId("launch-form")));
  expect(launch.mock.lastCall?.[0]).toEqual({ prompt: "Look", type: "fake", images: sent.images });
  await thumbnails(0);
  cleanup();
});

test("a message with images shows them", async () => {
  fake.promptImage.mockResolvedValue(new Blob([bytes], { type: "image/png" }));
  const events = new Told().prompt("What is this?", { images: [{ mediaType: "image/png", bytes: 40 }] }).events;
  const rows = rowsOf(applyEvents(emptyTranscript, events).items);
  await act(async () =>
    render(
      <TokenrailProvider client={fake.client}>
        <AgentId value="a">
          <KeepOpen>{rows.map((row) => <RowView key={row.key} row={row} plain={false} />)}</KeepOpen>
        </AgentId>
      </TokenrailProvider>,
    ),
  );
  expect(await screen.findByRole("img", { name: "Image: PNG, 8 × 6, 40 B" })).toBeTruthy();
  expect(fake.promptImage.mock.lastCall?.slice(0, 3)).toEqual(["a", 1, 0]);
});
