import type { Item } from "@tokenrail/client";
import { useEffect, useEffectEvent, useState } from "react";

import { LiveRate } from "../replay/rate.ts";
import { RateChart } from "../replay/RateChart.tsx";
import { Said } from "./said.ts";

/** How many seconds the chart shows. */
const seconds = 60;
const lookEveryMs = 500;

/** The tokens per second of an agent and its sub-agents, now and in the last minute. */
export function Pulse({ items }: { readonly items: readonly Item[] }) {
  const [rate] = useState(() => new LiveRate(seconds));
  const [said] = useState(() => new Said());
  const [shown, setShown] = useState(() => ({ rates: rate.rates(), current: 0 }));
  const look = useEffectEvent(() => {
    rate.see(said.look(items), Date.now());
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
        {shown.current.toFixed(0)} <small>tokens/s</small>
      </span>
    </div>
  );
}
