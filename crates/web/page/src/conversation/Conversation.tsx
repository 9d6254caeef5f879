import { type Agent, type Item, TokenrailError } from "@tokenrail/client";
import { useAgentMessages, useTokenrail } from "@tokenrail/client/react";
import {
  type ReactNode,
  type RefObject,
  useCallback,
  useEffect,
  useEffectEvent,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "react";

import { demo } from "../agent/demo.ts";
import { KillMe } from "../agent/KillMe.tsx";
import { isActive } from "../agent/StatusBadge.tsx";
import { titleOf } from "../agent/title.ts";
import { useFailure } from "../connection/failure.ts";
import { type ImageData, imageIn } from "../content/images.ts";
import { imagesOf } from "../prompt/attached.ts";
import { ReplayBar } from "../replay/ReplayBar.tsx";
import { useTranscriptAt, usePlaying, useRecording } from "../replay/useReplay.ts";
import { useShortcut } from "../ui/shortcuts.tsx";
import { Trouble } from "../ui/Trouble.tsx";
import { AgentId } from "./agent-id.ts";
import { type Answer, Answering } from "./answering.ts";
import { useChangesPanel } from "./changes/useChangesPanel.tsx";
import { Composer, whyNot } from "./Composer.tsx";
import { Folder } from "./folder.ts";
import { grouped } from "./groups.ts";
import { Header } from "./Header.tsx";
import { KeepOpen, useUnfold } from "./kept.tsx";
import { revealed, useMarks } from "./marks.ts";
import { type ListHandle, MessageList } from "./MessageList.tsx";
import { useMoves } from "./moves.ts";
import { useAskedTo } from "./orders.ts";
import { useOutbox } from "./outbox.ts";
import { Pulse } from "./Pulse.tsx";
import { openQuestionOf, type PromptRow, type Row } from "./row.ts";
import { rowsOf } from "./rows.ts";
import { foldsOver, useMatches } from "./search.ts";
import { SearchBar } from "./SearchBar.tsx";
import { NewestTodos, newestTodos, todosOf } from "./tools/newest-todos.ts";
import { PinnedTodos } from "./tools/PinnedTodos.tsx";
import { Among, useLatest } from "./tools/places.ts";

interface Props {
  readonly agentId: string;
  readonly onOpen: (id: string | null) => void;
  /** Called with the title of the agent, and with undefined when the conversation is closed. */
  readonly onTitle: (title: string | undefined) => void;
  /** Called with the agent when something about it changes, and with undefined when the conversation is closed. */
  readonly onAgent: (agent: Agent | undefined) => void;
}

export function Conversation({ agentId, onOpen, onTitle, onAgent }: Props) {
  const { transcript, agent, loading, error, refetch } = useAgentMessages(agentId);
  const [replaying, setReplaying] = useState(false);
  useAskedTo("replay", () => setReplaying(true));
  useTold(agent && titleOf(agent), onTitle);
  useTold(agent, onAgent);
  if (!agent) return <Nothing error={error} loading={loading} onRetry={refetch} onHome={() => onOpen(null)} />;
  return (
    <AgentId value={agentId}>
      <Folder value={agent.cwd}>
        <KeepOpen>
          {replaying ? (
            <Replayed agent={agent} onOpen={onOpen} onClose={() => setReplaying(false)} />
          ) : (
            <Pane
              agent={agent}
              items={transcript.items}
              head={transcript.last}
              loading={loading}
              error={error}
              onRefetch={refetch}
              onOpen={onOpen}
              onReplay={() => setReplaying(true)}
            />
          )}
        </KeepOpen>
      </Folder>
    </AgentId>
  );
}

interface PaneProps {
  readonly agent: Agent;
  readonly items: readonly Item[];
  /** How many events are shown. */
  readonly head: number;
  readonly loading?: boolean;
  readonly error?: Error | undefined;
  readonly onRefetch?: () => void;
  readonly onOpen: (id: string | null) => void;
  /** Absent while the replay is shown. */
  readonly onReplay?: (() => void) | undefined;
  readonly replay?: ReactNode;
}

function Pane({ agent, items, head, loading = false, error, onRefetch, onOpen, onReplay, replay }: PaneProps) {
  const [plain, setPlain] = useState(false);
  const [notices, setNotices] = useState(false);
  const all = useMemo(() => rowsOf(items), [items]);
  const rows = useMemo(() => grouped(notices ? all : all.filter(isForUsers)), [all, notices]);
  const newest = useMemo(() => newestTodos(rows), [rows]);
  const list = useRef<ListHandle>(null);
  const search = useSearch(rows, plain, list);
  useMoves(list, rows.length);
  const live = !replay;
  const canAsk = live && whyNot(agent) === undefined;
  const changes = useChangesPanel(agent, all, live);
  const { ask, onRetry, refusal } = useAsk(agent.id, rows, list);
  const pane = (
    <div className="conversation">
      <Header
        agent={agent}
        items={items}
        head={head}
        plain={plain}
        notices={notices}
        onPlain={setPlain}
        onNotices={setNotices}
        canWrite={live && whyNot(agent) === undefined}
        onSearch={search.open}
        onReplay={onReplay}
        changes={changes.button}
        onOpen={onOpen}
      />
      {search.bar}
      {live && isActive(agent.status) && <Pulse items={items} isHidden={rows.some((row) => openQuestionOf(row))} />}
      {error && <Trouble error={error} onRetry={onRefetch} />}
      {refusal && <Trouble error={refusal} />}
      {rows.length === 0 && (
        <p className="waiting-for">{loading ? "Loading the conversation…" : "No messages yet."}</p>
      )}
      <RowsContext agentId={agent.id} canAnswer={canAsk} all={all} newest={newest}>
        <MessageList
          {...{ rows, plain, loading, found: search.found, handle: list }}
          busy={live && isActive(agent.status)}
          onRetry={canAsk ? onRetry : undefined}
        />
      </RowsContext>
      {live && isActive(agent.status) && <PinnedTodos rows={rows} newest={newest} />}
      {live && agent.type === demo && isActive(agent.status) && <KillMe />}
      {replay ?? <Composer agent={agent} send={ask} />}
    </div>
  );
  return (
    <div className="with-panel">
      {pane}
      {changes.panel}
    </div>
  );
}

interface RowsContextProps {
  readonly agentId: string;
  readonly canAnswer: boolean;
  readonly all: readonly Row[];
  readonly newest: ReturnType<typeof newestTodos>;
  readonly children: ReactNode;
}

/** What each row can use: how to answer the agent, the other rows, and the newest to-do list. */
function RowsContext({ agentId, canAnswer, all, newest, children }: RowsContextProps) {
  const client = useTokenrail();
  const answer = useCallback<Answer>((requestId, reply) => client.answer(agentId, requestId, reply), [client, agentId]);
  return (
    <Answering value={canAnswer ? answer : undefined}>
      <Among value={useLatest(all)}>
        <NewestTodos value={newest}>{children}</NewestTodos>
      </Among>
    </Answering>
  );
}

/** Whether a row is not only a notice of the agent program. */
function isForUsers(row: Row): boolean {
  return row.kind !== "notice" || todosOf(row) !== undefined || imageIn(row.data) !== undefined;
}

/** Sends messages to the agent, and shows their answers at the end of the list. */
function useAsk(agentId: string, rows: readonly Row[], list: RefObject<ListHandle | null>) {
  const outbox = useOutbox();
  const [refusal, setRefusal] = useFailure();
  const client = useTokenrail();
  const ask = async (content: string, images?: readonly ImageData[]) => {
    setRefusal(undefined);
    await outbox.send(agentId, content, images);
    list.current?.toEnd();
  };
  // This must remain the same function. Otherwise, each token would render every row again.
  const again = async ({ text, turn, images = [] }: PromptRow) => {
    await ask(text, await imagesOf(client, agentId, turn ?? 0, images.length));
  };
  const latest = useRef({ rows, again });
  useLayoutEffect(() => {
    latest.current = { rows, again };
  });
  const onRetry = useCallback((row: Row) => {
    const prompt = promptBefore(latest.current.rows, row);
    if (prompt) latest.current.again(prompt).catch(setRefusal);
  }, [setRefusal]);
  return { ask, onRetry, refusal };
}

/** The same pane, with the messages at a chosen moment. */
function Replayed({ agent, onOpen, onClose }: { agent: Agent; onOpen: PaneProps["onOpen"]; onClose: () => void }) {
  const client = useTokenrail();
  const { recording, loaded, error } = useRecording(client, agent.id);
  const [refusal, setRefusal] = useFailure();
  const playing = usePlaying(recording?.timeline);
  const { items, last } = useTranscriptAt(recording, playing.moment);
  useShortcut("Escape", onClose);
  useShortcut(" ", () => playing.setPlaying(!playing.playing));
  const again = (speed: number) => {
    setRefusal(undefined);
    client.replay(agent.id, { speed }).then(({ id }) => onOpen(id), setRefusal);
  };
  const bar = recording ? (
    <ReplayBar recording={recording} playing={playing} onAgain={again} onClose={onClose} />
  ) : (
    <p className="replay" role="status">
      Loading events…{loaded ? ` (${loaded} so far)` : ""}
    </p>
  );
  return <Pane agent={agent} items={items} head={last} error={error ?? refusal} onOpen={onOpen} replay={bar} />;
}

function useSearch(rows: readonly Row[], plain: boolean, list: RefObject<ListHandle | null>) {
  const [words, setWords] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const matches = useMatches(rows, isOpen ? words : "");
  const found = matches[Math.min(at, matches.length - 1)];
  useMarks(isOpen ? words : "");
  const unfold = useUnfold();
  const show = useEffectEvent((index: number) => {
    const row = rows[index];
    if (row) unfold(foldsOver(row, words, plain));
    return revealed(index, words, () => list.current?.show(index));
  });
  useEffect(() => (found === undefined ? undefined : show(found)), [found, words]);
  const open = () => setOpen(true);
  useShortcut("/", open);
  useAskedTo("search", open);
  const bar = isOpen && (
    <SearchBar
      words={words}
      at={Math.min(at, matches.length - 1)}
      places={matches.length}
      onWords={(next) => {
        setWords(next);
        setAt(0);
      }}
      onMove={(by) => matches.length && setAt((now) => (now + by + matches.length) % matches.length)}
      onClose={() => setOpen(false)}
    />
  );
  return { open, bar, found };
}

interface NothingProps {
  readonly error: Error | undefined;
  readonly loading: boolean;
  readonly onRetry: () => void;
  readonly onHome: () => void;
}

function Nothing({ error, loading, onRetry, onHome }: NothingProps) {
  if (loading && !error) return <p className="waiting-for">Loading the conversation…</p>;
  const gone = error instanceof TokenrailError && error.code === "not_found";
  return (
    <div className="nothing" data-testid="no-agent">
      <h2>{gone ? "Agent not found" : "Cannot show this agent"}</h2>
      {gone ? (
        <p>It may have been deleted permanently, or it may be on another server.</p>
      ) : (
        error && <Trouble error={error} onRetry={onRetry} />
      )}
      <button type="button" className="button" data-testid="home" onClick={onHome}>
        Go to the start page
      </button>
    </div>
  );
}

/** The prompt of the turn to which a row belongs. */
function promptBefore(rows: readonly Row[], row: Row): PromptRow | undefined {
  for (let index = rows.indexOf(row); index >= 0; index--) {
    const before = rows[index];
    if (before?.kind === "prompt") return before;
  }
  return undefined;
}

/** Tells a value to the page, and undefined at the end. */
function useTold<T>(value: T | undefined, tell: (value: T | undefined) => void): void {
  useEffect(() => {
    tell(value);
    return () => tell(undefined);
  }, [value, tell]);
}
