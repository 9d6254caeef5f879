import type { Item } from "@tokenrail/client";
import { useEffect, useEffectEvent, useRef, useState } from "react";

import { usePhase } from "../connection/link.tsx";
import { LiveRate } from "../replay/rate.ts";
import { RateChart } from "../replay/RateChart.tsx";
import { Said } from "./said.ts";

/** How many seconds the chart shows. */
const seconds = 60;
const lookEveryMs = 500;

interface Props {
  readonly items: readonly Item[];
  /** While the agent waits for the user, its speed says nothing. */
  readonly isHidden?: boolean;
}

/**
 * The tokens per second of an agent and its sub-agents, now and in the last minute. It stops while the connection is
 * lost. What is caught up afterwards arrives at once, so it says nothing about the speed.
 */
export function Pulse({ items, isHidden = false }: Props) {
  const [rate] = useState(() => new LiveRate(seconds));
  const [said] = useState(() => new Said());
  const [shown, setShown] = useState(() => ({ rates: rate.rates(), current: 0 }));
  const phase = usePhase();
  // The first look after the return sees what was missed, because the page is live again before the next look.
  const hasMissed = useRef(false);
  useEffect(() => {
    if (phase !== "live") hasMissed.current = true;
  }, [phase]);
  const look = useEffectEvent(() => {
    if (phase === "away") return;
    const more = said.look(items);
    rate.see(phase === "live" && !hasMissed.current ? more : 0, Date.now());
    if (phase === "live") hasMissed.current = false;
    setShown({ rates: rate.rates(), current: rate.current() });
  });
  useEffect(() => {
    look();
    const timer = setInterval(look, lookEveryMs);
    return () => clearInterval(timer);
  }, []);
  if (isHidden) return null;
  return (
    <div className="pulse" data-testid="pulse">
      <RateChart rates={shown.rates} label={`About ${Math.round(shown.current)} tokens per second`} />
      <span className="pulse-now">
        {phase === "away" ? "–" : shown.current.toFixed(0)} <small>tokens/s</small>
      </span>
    </div>
  );
}
