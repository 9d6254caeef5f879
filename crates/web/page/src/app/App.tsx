import type { Agent } from "@tokenrail/client";
import { useAgents, useConnection, useTokenrail } from "@tokenrail/client/react";
import { type ReactNode, type Ref, type RefObject, useCallback, useEffect, useRef, useState } from "react";

import { howEnded, isActive, needsYou } from "../agent/StatusBadge.tsx";
import { AgentShelf } from "../agents/AgentShelf.tsx";
import { useCounted, useOlder } from "../agents/counts.ts";
import { foldersOf } from "../agents/filter.ts";
import { neighbourOf } from "../agents/groups.ts";
import { Home } from "../agents/Home.tsx";
import { useNotices } from "../agents/notices.ts";
import { useOldest, useOpenQuestions } from "../agents/open-questions.ts";
import { useAgentTypes } from "../agents/types.ts";
import { pathOf } from "../connection/address.ts";
import { LinkProvider, useLink } from "../connection/link.tsx";
import { Conversation } from "../conversation/Conversation.tsx";
import { useOutbox } from "../conversation/outbox.ts";
import { Icon } from "../ui/Icon.tsx";
import { IconButton } from "../ui/IconButton.tsx";
import { phone, useMedia } from "../ui/media.ts";
import { Shortcuts, useKeyPair, useShortcut } from "../ui/shortcuts.tsx";
import { soon } from "../ui/soon.ts";
import { Banner } from "./Banner.tsx";
import { commandsOf, nextThatNeedsYou } from "./commands.ts";
import { ConnectionState } from "./ConnectionState.tsx";
import { LogOutButton } from "./LogOut.tsx";
import { Palette } from "./Palette.tsx";
import { useRoute } from "./route.ts";
import { useTab } from "./tab.ts";
import { ThemeButton, useTheme } from "./theme.tsx";

export function App() {
  const [agentId, go, isMissing] = useRoute();
  const { agents: listed, loading, error, refetch, loadMore } = useAgents(useLater(agentId !== null));
  const older = useOlder(listed.length, loadMore);
  const { agents, active } = useCounted(listed, older.isThere);
  const types = useAgentTypes(agentId === null);
  const drawer = useDrawer();
  const open = (id: string | null) => {
    go(id);
    drawer.hide();
  };
  useSending();
  const [title, setTitle] = useState<string>();
  // Only the palette needs it, when it is opened.
  const shown = useRef<Agent>(undefined);
  const onAgent = useCallback((agent: Agent | undefined) => void (shown.current = agent), []);
  useTab(title, agents.filter(needsYou).length);
  const [phase, onCaughtUp] = useLink();
  const questions = useOpenQuestions(agents);
  const asked = useOldest(questions);
  const onNotify = useNotices(agents, questions, open);
  useAgentKeys(agents, agentId, open);
  const view = isMissing ? (
    <Missing onHome={() => open(null)} />
  ) : agentId ? (
    <Conversation key={agentId} agentId={agentId} onOpen={open} onTitle={setTitle} onAgent={onAgent} />
  ) : (
    <Home types={types} empty={!loading && !error && agents.length === 0} folders={foldersOf(agents)} onLaunched={open} />
  );
  return (
    <div className="app" data-drawer={drawer.isOpen || undefined} data-phase={phase}>
      <a className="skip" href="#main">
        Skip to the main content
      </a>
      <Bar
        agents={agents}
        onHome={() => open(null)}
        menu={drawer.isThere && <MenuButton {...drawer.button} waiting={agents.filter(needsYou).length} />}
      >
        <Commands agents={agents} agentId={agentId} shown={shown} onOpen={open} />
      </Bar>
      {drawer.covers && <div className="backdrop" aria-hidden="true" onClick={drawer.close} />}
      <aside id="agents" className="side" inert={drawer.isThere && !drawer.isOpen}>
        <NewAgent onNew={() => open(null)} />
        <AgentShelf
          {...{ agents, asked, active, loading, error }}
          current={agentId}
          onOpen={open}
          onRetry={refetch}
          onNotify={onNotify}
          onMore={older.isThere ? older.load : undefined}
        />
      </aside>
      <main id="main" className="main" inert={drawer.covers} tabIndex={-1}>
        <Banner key={agentId} {...{ phase, agentId, onCaughtUp }} />
        <LinkProvider value={phase}>{view}</LinkProvider>
      </main>
    </div>
  );
}

/** Sends what was not delivered before the page was loaded or the session ended, whichever agent it shows. */
function useSending(): void {
  const outbox = useOutbox();
  useEffect(() => outbox.sendAll(), [outbox]);
}

/** On a small screen, the list of agents is a drawer that covers the rest while it is open. */
function useDrawer() {
  const isThere = useMedia(phone);
  const [isOpen, setOpen] = useState(false);
  const menu = useRef<HTMLButtonElement>(null);
  const close = () => {
    setOpen(false);
    menu.current?.focus();
  };
  const covers = isThere && isOpen;
  useShortcut("Escape", close, covers);
  const button = { ref: menu, isOpen, onToggle: () => setOpen(!isOpen) };
  return { isThere, isOpen, covers, button, close, hide: () => setOpen(false) };
}

/** The keys that open another agent. */
function useAgentKeys(agents: readonly Agent[], agentId: string | null, open: (id: string | null) => void): void {
  const openIf = (agent: Agent | undefined) => agent && open(agent.id);
  useShortcut("n", () => open(null));
  useShortcut("[", () => openIf(neighbourOf(agents, agentId, -1)));
  useShortcut("]", () => openIf(neighbourOf(agents, agentId, 1)));
  useKeyPair("g", "n", () => openIf(nextThatNeedsYou(agents, agentId)));
}

function Missing({ onHome }: { readonly onHome: () => void }) {
  return (
    <div className="nothing" data-testid="missing">
      <h2>Page not found</h2>
      <p>There is nothing at this address.</p>
      <button type="button" className="button" data-testid="home" onClick={onHome}>
        Go to the start page
      </button>
    </div>
  );
}

interface CommandsProps {
  readonly agents: readonly Agent[];
  readonly agentId: string | null;
  readonly shown: RefObject<Agent | undefined>;
  readonly onOpen: (id: string | null) => void;
}

function Commands({ shown, ...props }: CommandsProps) {
  const client = useTokenrail();
  const [, onTheme] = useTheme();
  return <Palette commandsNow={() => commandsOf({ client, onTheme, shown: shown.current, ...props })} />;
}

function NewAgent({ onNew }: { readonly onNew: () => void }) {
  return (
    <button
      type="button"
      className="button primary wide"
      data-testid="new-agent"
      aria-keyshortcuts="n"
      onClick={onNew}
    >
      <Icon name="plus" /> New agent
    </button>
  );
}

interface BarProps {
  readonly agents: readonly Agent[];
  readonly onHome: () => void;
  readonly menu: ReactNode;
  readonly children: ReactNode;
}

/** The bar at the top of every view. */
function Bar({ agents, onHome, menu, children }: BarProps) {
  return (
    <header className="bar">
      {menu}
      <h1 className="brand">
        <a
          href={pathOf(null)}
          onClick={(event) => {
            event.preventDefault();
            onHome();
          }}
        >
          <Rails /> Tokenrail
        </a>
      </h1>
      <ConnectionState state={useConnection()} />
      <AgentNews agents={agents} />
      <span className="bar-end">
        {children}
        <Shortcuts />
        <ThemeButton />
        <LogOutButton />
      </span>
    </header>
  );
}

interface MenuButtonProps {
  readonly ref: Ref<HTMLButtonElement>;
  readonly isOpen: boolean;
  /** How many agents need the user. */
  readonly waiting: number;
  readonly onToggle: () => void;
}

/** Opens and closes the list of agents on a small screen. */
export function MenuButton({ ref, isOpen, waiting, onToggle }: MenuButtonProps) {
  return (
    <IconButton
      icon={isOpen ? "close" : "menu"}
      ref={ref}
      className="menu-button"
      name={waiting > 0 ? `Agents: ${waiting} ${waiting === 1 ? "needs" : "need"} you` : "Agents"}
      aria-expanded={isOpen}
      aria-controls="agents"
      data-testid="menu"
      onClick={onToggle}
    >
      {waiting > 0 && !isOpen && (
        <span className="menu-waiting" aria-hidden="true">
          {waiting}
        </span>
      )}
    </IconButton>
  );
}

/** True after the first paint of a view that shows something else first. */
function useLater(later: boolean): boolean {
  const [isTime, setTime] = useState(!later);
  useEffect(() => soon(() => setTime(true)), []);
  return isTime;
}

/** Announces to screen readers that an agent has ended or needs the user, but not what it said. */
function AgentNews({ agents }: { readonly agents: readonly Agent[] }) {
  const before = useRef(new Map<string, Agent>());
  const [news, setNews] = useState("");
  useEffect(() => {
    for (const agent of agents) {
      const old = before.current.get(agent.id);
      if (!old) continue;
      const name = agent.name ?? agent.type;
      if (isActive(old.status) && !isActive(agent.status)) setNews(`Agent ${name} ${howEnded(agent.status)}`);
      if (!needsYou(old) && needsYou(agent)) setNews(`Agent ${name} needs you`);
    }
    before.current = new Map(agents.map((agent) => [agent.id, agent]));
  }, [agents]);
  return (
    <span className="unseen" role="status" data-testid="news">
      {news}
    </span>
  );
}

function Rails() {
  return (
    <svg className="rails" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
      <path d="M5 18 8.5 2M15 18 11.5 2M6.2 13.5h7.6M7.2 9h5.6M8 5h4" />
    </svg>
  );
}
