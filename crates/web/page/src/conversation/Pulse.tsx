import type { Item } from "@tokenrail/client";
import { useEffect, useEffectEvent, useState } from "react";

import { usePhase } from "../app/link.tsx";
import { LiveRate } from "../replay/rate.ts";
import { RateChart } from "../replay/RateChart.tsx";
import { Said } from "./said.ts";

/** How many seconds the chart shows. */
const seconds = 60;
const lookEveryMs = 500;

/**
 * The tokens per second of an agent and its sub-agents, now and in the last minute. It stops while the connection is
 * lost. What is caught up afterwards arrives at once, so it says nothing about the speed.
 */
export function Pulse({ items }: { readonly items: readonly Item[] }) {
  const [rate] = useState(() => new LiveRate(seconds));
  const [said] = useState(() => new Said());
  const [shown, setShown] = useState(() => ({ rates: rate.rates(), current: 0 }));
  const phase = usePhase();
  const look = useEffectEvent(() => {
    if (phase === "away") return;
    const more = said.look(items);
    rate.see(phase === "live" ? more : 0, Date.now());
    setShown({ rates: rate.rates(), current: rate.current() });
  });
  useEffect(() => {
    look();
    const timer = setInterval(look, lookEveryMs);
    return () => clearInterval(timer);
  }, []);
  return (
    <div className="pulse" data-testid="pulse">
      <RateChart rates={shown.rates} label={`About ${Math.round(shown.current)} tokens per second`} />
      <span className="pulse-now">
        {phase === "away" ? "–" : shown.current.toFixed(0)} <small>tokens/s</small>
      </span>
    </div>
  );
}
