import { applyEvents, type Changes, emptyTranscript } from "@tokenrail/client";
import { TokenrailProvider } from "@tokenrail/client/react";
import { act, fireEvent, render, screen, within } from "@testing-library/react";
import { beforeEach, expect, test, vi } from "vitest";

import { type CalledFile, changingCalls, filesOfCalls, patchOfCalls } from "../src/conversation/changes/called.ts";
import { useChangesPanel } from "../src/conversation/changes/useChangesPanel.tsx";
import { KeepOpen } from "../src/conversation/kept.tsx";
import { rowsOf } from "../src/conversation/rows.ts";
import { diffOf, textOfLine } from "../src/conversation/tools/diff.ts";
import { filesOfPatch, hunksOf } from "../src/conversation/tools/file-patch.ts";
import { Told } from "./events.ts";
import { FakeClient } from "./fake-client.ts";

const rowsAfter = (told: Told) => rowsOf(applyEvents(emptyTranscript, told.events).items);

function filesAfter(told: Told, cwd = "/project"): CalledFile[] {
  return filesOfCalls(changingCalls(rowsAfter(told)), cwd);
}

/** Each file with its counts: `modified a.txt +1 -1`. */
function facts(files: readonly CalledFile[]): string[] {
  return files.map(({ status, oldPath, path, added, removed }) =>
    [status, oldPath && `${oldPath} ->`, path, added === undefined ? "?" : `+${added} -${removed}`].filter(Boolean).join(" "),
  );
}

const edited = (id: string, input: object, told: Told, name = "Edit") => told.call(id, name, input).gave(id, "ok");

test.each([
  ["Claude", "Edit", { file_path: "/project/a.rs", old_string: "one\ntwo\n", new_string: "one\n2\n" }, "modified a.rs +1 -1"],
  ["opencode", "edit", { filePath: "/project/a.rs", oldString: "one\ntwo\n", newString: "one\n2\n" }, "modified a.rs +1 -1"],
  [
    ...(["Claude", "MultiEdit"] as const),
    { file_path: "/project/a.rs", edits: [{ old_string: "one", new_string: "1" }, { old_string: "two", new_string: "" }] },
    "modified a.rs +1 -2",
  ],
  ["Claude", "Write", { file_path: "/project/a.rs", content: "one\ntwo\n" }, "added a.rs +2 -0"],
  ["ACP", "Edit a.rs", { path: "/project/a.rs", oldText: "one", newText: "two" }, "modified a.rs +1 -1"],
  [
    ...(["Codex", "apply_patch"] as const),
    "*** Begin Patch\n*** Update File: a.rs\n@@ fn main\n one\n-two\n+2\n+3\n*** End Patch",
    "modified a.rs +2 -1",
  ],
  [
    ...(["Codex", "fileChange"] as const),
    { changes: [{ path: "/project/a.rs", kind: "update", diff: "@@ -1,2 +1,2 @@\n one\n-two\n+2\n" }] },
    "modified a.rs +1 -1",
  ],
  ["any", "patch", { diff: "--- a/a.rs\n+++ b/a.rs\n@@ -1 +1 @@\n-one\n+1\n" }, "modified a.rs +1 -1"],
])("a change by %s with %s is counted", (_, name, input, expected) => {
  expect(facts(filesAfter(edited("c", input as object, new Told(), name)))).toEqual([expected]);
});

test("the changes of one file are one entry, in the order of the calls", () => {
  const told = new Told();
  edited("1", { file_path: "/project/b.md", content: "one\n" }, told, "Write");
  edited("2", { file_path: "b.md", old_string: "one", new_string: "1" }, told);
  edited("3", { file_path: "/elsewhere/a.md", old_string: "x", new_string: "y" }, told);
  edited("4", { file_path: "/project/b.md", content: "1\ntwo\n" }, told, "Write");
  const files = filesAfter(told);
  // The last call writes the whole file again, and adds one line to it.
  expect(facts(files)).toEqual(["modified /elsewhere/a.md +1 -1", "added b.md +3 -1"]);
  expect(files[1]?.steps).toHaveLength(3);
});

test("calls that failed, still run or only read have changed nothing", () => {
  const told = new Told();
  told.call("1", "Edit", { file_path: "a", old_string: "x", new_string: "y" }).gave("1", "no", { isError: true });
  told.call("2", "Bash", { command: "rm a" }).gave("2", "ok");
  told.call("3", "Read", { file_path: "a" }).gave("3", "x");
  told.call("4", "Edit", { file_path: "a", old_string: "x", new_string: "y" });
  expect(filesAfter(told)).toEqual([]);
});

test("the calls of a sub-agent count", () => {
  const told = new Told().call("task", "Task", { prompt: "do it" });
  told.call("1", "Edit", { file_path: "a", old_string: "x", new_string: "y" }, { parentToolCallId: "task" });
  told.gave("1", "ok", { parentToolCallId: "task" }).gave("task", "done");
  expect(facts(filesAfter(told))).toEqual(["modified a +1 -1"]);
});

test("a patch can add, delete and move files", () => {
  const patch = `*** Begin Patch
*** Add File: new.txt
+one
+two
*** Delete File: old.txt
*** Update File: from.txt
*** Move to: to.txt
@@
-a
+b
*** End Patch`;
  const files = filesAfter(edited("c", { input: patch }, new Told(), "apply_patch"));
  expect(facts(files)).toEqual(["added new.txt +2 -0", "deleted old.txt +0 -0", "renamed from.txt -> to.txt +1 -1"]);
});

test("a line of a file is not taken for a header", () => {
  const patch = `diff --git a/q b/q
--- a/q
+++ b/q
@@ -1,2 +1,2 @@
--- a comment
-x
+++ another
+*** Update File: z
diff --git a/r b/r
new file mode 100644
--- /dev/null
+++ b/r
@@ -0,0 +1 @@
+r
`;
  expect(filesOfPatch(patch)).toMatchObject([
    { path: "q", status: "modified", added: 2, removed: 2 },
    { path: "r", status: "added", added: 1, removed: 0 },
  ]);
});

test("a diff of git has the numbers of its lines", () => {
  const patch = "diff --git a/q b/q\n--- a/q\n+++ b/q\n@@ -8,3 +9,3 @@ fn\n a\n-b\n+c\n d\n@@ -90 +91 @@\n-x\n+y\n";
  const [file] = filesOfPatch(patch);
  const hunks = file ? hunksOf(file) : [];
  const lines = hunks.flatMap(({ diff }) => diff.lines.map((line) => `${line.number}${line.mark}${textOfLine(line)}`));
  expect(lines).toEqual(["9 a", "9-b", "10+c", "11 d", "90-x", "91+y"]);
  const unchanged = hunks.flatMap(({ diff }) => diff.lines.filter(({ mark }) => mark === " "));
  expect(unchanged.map(({ oldNumber }) => oldNumber)).toEqual([8, 10]);
});

test("the patch of calls has the form that apply_patch reads", () => {
  const told = new Told();
  edited("1", { file_path: "/project/new.md", content: "one\n" }, told, "Write");
  edited("2", { file_path: "/project/old.md", old_string: "a\nb", new_string: "c" }, told);
  expect(patchOfCalls(filesAfter(told))).toEqual({
    text: "*** Begin Patch\n*** Add File: new.md\n+one\n*** Update File: old.md\n@@\n-a\n-b\n+c\n*** End Patch\n",
    isPart: false,
  });
});

let fake: FakeClient;
const git = (files: object[]): Changes =>
  ({ source: "git", turn: 1, base: "0123456789abcdef0123456789abcdef01234567", files, truncated: false }) as Changes;

beforeEach(() => {
  localStorage.clear();
  fake = new FakeClient();
  Object.assign(navigator, { clipboard: { writeText: vi.fn(() => Promise.resolve()) } });
});

function Host({ told }: { readonly told: Told }) {
  const { button, panel } = useChangesPanel(fake.agentNow, rowsAfter(told), true);
  return (
    <>
      {button}
      {panel}
    </>
  );
}

function show(told: Told) {
  const host = (shown: Told) => (
    <TokenrailProvider client={fake.client}>
      <KeepOpen>
        <Host told={shown} />
      </KeepOpen>
    </TokenrailProvider>
  );
  const { rerender } = render(host(told));
  return (next: Told) => rerender(host(next));
}

test("the panel lists git's files, and loads a diff when it is opened", async () => {
  fake.changes.mockResolvedValue(
    git([
      { path: "a.txt", status: "modified", added: 1, removed: 1, binary: false },
      { path: "new.txt", oldPath: "old.txt", status: "renamed", added: 0, removed: 0, binary: false },
      { path: "p.png", status: "untracked", binary: true },
    ]),
  );
  fake.patch.mockResolvedValue({ text: "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-x\n+y\n", truncated: false });
  show(new Told().prompt("go"));
  fireEvent.click(await screen.findByRole("button", { name: /3 files \+1 −1/ }));
  let panel = screen.getByRole("complementary", { name: "Changes" });
  const entries = within(panel).getAllByRole("listitem").map((entry) => entry.textContent);
  expect(entries).toEqual(["Mmodifieda.txt+1 −1", "Rrenamedold.txt → new.txt+0 −0", "Uuntrackedp.pngbinary"]);
  expect(fake.patch).not.toHaveBeenCalled();
  fireEvent.click(within(panel).getByRole("button", { name: /a\.txt/ }));
  expect(await within(panel).findByText("y")).toBeTruthy();
  expect(fake.patch.mock.calls[0]?.[1]).toMatchObject({ file: { path: "a.txt" } });
  expect(within(panel).queryByRole("button", { name: "Split" })).toBeNull();
  const width = vi.spyOn(Element.prototype, "clientWidth", "get").mockReturnValue(700);
  fireEvent.keyDown(window, { key: "f" });
  fireEvent.keyDown(window, { key: "f" });
  panel = screen.getByRole("complementary", { name: "Changes" });
  fireEvent.click(within(panel).getByRole("button", { name: "Split" }));
  await within(panel).findByText("y");
  expect([...panel.querySelectorAll(".diff-pair")].map((pair) => pair.textContent)).toEqual(["1-x\n1+y\n"]);
  expect(within(panel).getByRole("group", { name: "Changes to a.txt, 1 of 1" })).toBeTruthy();
  width.mockRestore();
  fireEvent.click(within(panel).getByRole("button", { name: "Copy patch" }));
  expect(await within(panel).findByText("Copied")).toBeTruthy();
  expect(navigator.clipboard.writeText).toHaveBeenCalledWith(expect.stringContaining("+y"));
});

test("in a window with room for it, the list becomes wide enough for two columns", async () => {
  const media = vi.spyOn(window, "matchMedia").mockImplementation(
    (query) => ({ matches: query.includes("min-width"), addEventListener: () => {}, removeEventListener: () => {} }) as unknown as MediaQueryList,
  );
  show(edited("1", { file_path: "/tmp/b.md", old_string: "one", new_string: "1" }, new Told().prompt("go")));
  fireEvent.keyDown(window, { key: "f" });
  const panel = screen.getByRole("complementary", { name: "Changes" });
  fireEvent.click(within(panel).getByRole("button", { name: "Unified" }));
  fireEvent.click(within(panel).getByRole("button", { name: /b\.md/ }));
  expect([panel.dataset["layout"], panel.querySelector(".diff-pair")]).toEqual(["unified", null]);
  fireEvent.click(within(panel).getByRole("button", { name: "Split" }));
  expect([panel.dataset["layout"], panel.querySelector(".diff-pair")?.textContent]).toEqual(["split", "-one\n+1\n"]);
  media.mockRestore();
});

test("a file with one side has one column, also in the split layout", () => {
  localStorage.setItem("tokenrail-diff", "split");
  const media = vi.spyOn(window, "matchMedia").mockImplementation(
    (query) => ({ matches: query.includes("min-width"), addEventListener: () => {}, removeEventListener: () => {} }) as unknown as MediaQueryList,
  );
  show(edited("1", { file_path: "/tmp/new.md", content: "one\ntwo\n" }, new Told().prompt("go"), "Write"));
  fireEvent.keyDown(window, { key: "f" });
  const panel = screen.getByRole("complementary", { name: "Changes" });
  fireEvent.click(within(panel).getByRole("button", { name: /new\.md/ }));
  expect(within(panel).getByLabelText(/^Changes to .*new\.md/).dataset["layout"]).toBe("unified");
  media.mockRestore();
  localStorage.clear();
});

test("without a repository, the panel lists the files of the agent's calls", async () => {
  show(edited("1", { file_path: "/tmp/b.md", old_string: "one", new_string: "1" }, new Told().prompt("go")));
  fireEvent.keyDown(window, { key: "f" });
  const panel = screen.getByRole("complementary", { name: "Changes" });
  expect(within(panel).getByRole("listitem").textContent).toBe("Mmodifiedb.md+1 −1");
  fireEvent.click(within(panel).getByRole("button", { name: /b\.md/ }));
  expect([...panel.querySelectorAll(".diff-line")].map((line) => line.textContent?.trim())).toEqual(["-one", "+1"]);
  expect(within(panel).queryByRole("group", { name: "Source" })).toBeNull();
  fireEvent.keyDown(window, { key: "f" });
  expect(screen.queryByRole("complementary", { name: "Changes" })).toBeNull();
});

test("where both are known, the user chooses", async () => {
  fake.changes.mockResolvedValue(git([{ path: "other", status: "untracked", added: 5, removed: 0, binary: false }]));
  show(edited("1", { file_path: "/tmp/b.md", old_string: "one", new_string: "1" }, new Told().prompt("go")));
  fireEvent.click(await screen.findByRole("button", { name: /1 file \+5/ }));
  const panel = screen.getByRole("complementary", { name: "Changes" });
  expect(within(panel).getByRole("listitem").textContent).toContain("other");
  fireEvent.click(within(panel).getByRole("button", { name: "Agent's edits" }));
  expect(within(panel).getByRole("listitem").textContent).toContain("b.md");
});

test("git is asked again when a call ends while the panel is open, and not while nothing happens", async () => {
  fake.changes.mockResolvedValue(git([]));
  const next = show(new Told().prompt("go"));
  await vi.waitFor(() => expect(fake.changes).toHaveBeenCalledTimes(1));
  fireEvent.keyDown(window, { key: "f" });
  expect(await screen.findByText(/^Nothing differs from the commit at the start of turn 1/)).toBeTruthy();
  next(edited("1", { command: "make" }, new Told().prompt("go"), "Bash"));
  await vi.waitFor(() => expect(fake.changes).toHaveBeenCalledTimes(2), { timeout: 3_000 });
  vi.useFakeTimers();
  next(edited("1", { command: "make" }, new Told().prompt("go"), "Bash").text("m", "a token"));
  vi.advanceTimersByTime(60_000);
  vi.useRealTimers();
  expect(fake.changes).toHaveBeenCalledTimes(2);
});

test("300 files are listed, and the rest on request", async () => {
  const files = Array.from({ length: 310 }, (_, at) => ({ path: `f${at}`, status: "added", added: 1, removed: 0, binary: false }));
  fake.changes.mockResolvedValue(git(files));
  show(new Told().prompt("go"));
  fireEvent.click(await screen.findByRole("button", { name: /310 files/ }));
  expect(screen.getByTestId("changed-files").children).toHaveLength(300);
  fireEvent.click(screen.getByRole("button", { name: "Show 10 more files" }));
  expect(screen.getByTestId("changed-files").children).toHaveLength(310);
});

test("if git sees nothing, the button and the list have the files of the calls, and the user may ask for git's", async () => {
  fake.changes.mockResolvedValue(git([]));
  show(edited("1", { file_path: "/elsewhere/b.md", old_string: "one", new_string: "1" }, new Told().prompt("go")));
  await vi.waitFor(() => expect(fake.changes).toHaveBeenCalledTimes(1));
  fireEvent.click(await screen.findByRole("button", { name: /1 file \+1 −1/ }));
  const panel = screen.getByRole("complementary", { name: "Changes" });
  expect(within(panel).getByRole("listitem").textContent).toContain("b.md");
  fireEvent.click(await within(panel).findByRole("button", { name: "Repository" }));
  expect(within(panel).queryAllByRole("listitem")).toEqual([]);
  expect(screen.getByTestId("changes-button").textContent).toContain("0 files");
});

test("a list that git has cut says that there are more files, also on the button", async () => {
  const files = [{ path: "a", status: "added", added: 1, removed: 0, binary: false }];
  fake.changes.mockResolvedValue({ ...git(files), truncated: true } as Changes);
  show(new Told().prompt("go"));
  expect((await screen.findByTestId("changes-button")).textContent).toBe("Repository: 1+ files +1 −0");
});

test("Escape and the button close the list, and the focus returns to the button that opened it", async () => {
  show(edited("1", { file_path: "/tmp/b.md", old_string: "one", new_string: "1" }, new Told().prompt("go")));
  for (const close of [
    () => fireEvent.keyDown(window, { key: "Escape" }),
    () => fireEvent.click(screen.getByRole("button", { name: "Close the changes" })),
  ]) {
    fireEvent.click(screen.getByTestId("changes-button"));
    close();
    expect(screen.queryByTestId("changes")).toBeNull();
    expect(document.activeElement).toBe(screen.getByTestId("changes-button"));
  }
});

test("calls that end all the time do not keep the list from being updated", async () => {
  vi.useFakeTimers();
  fake.changes.mockResolvedValue(git([]));
  const told = new Told().prompt("go");
  const next = show(told);
  await act(() => vi.advanceTimersByTimeAsync(1_000));
  fireEvent.keyDown(window, { key: "f" });
  for (let call = 0; call < 20; call++) {
    edited(`${call}`, { command: "make" }, told, "Bash");
    next(told);
    await act(() => vi.advanceTimersByTimeAsync(100));
  }
  // At the beginning, and twice in two seconds.
  expect(fake.changes).toHaveBeenCalledTimes(3);
  vi.useRealTimers();
});

test("a replay does not ask git", async () => {
  vi.useFakeTimers();
  const Replay = () => void useChangesPanel(fake.agentNow, rowsAfter(new Told().prompt("go")), false);
  render(
    <TokenrailProvider client={fake.client}>
      <Replay />
    </TokenrailProvider>,
  );
  await act(() => vi.advanceTimersByTimeAsync(5_000));
  vi.useRealTimers();
  expect(fake.changes).not.toHaveBeenCalled();
});

test("what a sub-agent says leaves the finished edit beside its call as it is", () => {
  const use = (id: string, name: string, input: object) => ({ type: "tool_use", id, name, input });
  const told = new Told();
  told.message("m", [use("w", "Write", { file_path: "a", content: "x" }), use("t", "Task", { prompt: "go" })]);
  told.gave("w", "ok");
  let transcript = applyEvents(emptyTranscript, told.events);
  const [edit] = changingCalls(rowsOf(transcript.items));
  told.message("inner", "a word", { parentToolCallId: "t" });
  transcript = applyEvents(transcript, told.events.slice(-1));
  expect(edit?.name).toBe("Write");
  expect(changingCalls(rowsOf(transcript.items))[0]).toBe(edit);
});

test("unchanged lines have both numbers, so that each column of the split view has its own", () => {
  const diff = diffOf({ before: "a\nb\nc\n", after: "new\na\nc\n" });
  expect(diff?.lines.map(({ mark, number, oldNumber }) => [mark, oldNumber, number])).toEqual([
    ["+", undefined, 1],
    [" ", 1, 2],
    ["-", undefined, 2],
    [" ", 3, 3],
  ]);
});

test("an agent that has edited nothing does not wear what others have changed as its own", async () => {
  fake.changes.mockResolvedValue(git([{ path: "a.txt", status: "modified", added: 1, removed: 1, binary: false }]));
  const become = show(new Told().prompt("go"));
  const button = await screen.findByTestId("changes-button");
  expect([button.textContent, button.dataset["source"]]).toEqual(["Repository: 1 file +1 −1", "others"]);
  become(edited("1", { file_path: "/tmp/a.txt", old_string: "x", new_string: "y" }, new Told().prompt("go")));
  expect([button.textContent, button.dataset["source"]]).toEqual(["Changes: 1 file +1 −1", undefined]);
});
