import type { Item } from "@tokenrail/client";
import { useEffect, useEffectEvent, useState } from "react";

import { LiveRate } from "../replay/rate.ts";
import { RateChart } from "../replay/RateChart.tsx";

/** What is shown of the past. */
const seconds = 60;
const lookEveryMs = 500;

/** How fast an agent speaks, now and in the last minute. */
export function Pulse({ items }: { readonly items: readonly Item[] }) {
  const [rate] = useState(() => new LiveRate(seconds));
  const [shown, setShown] = useState(() => ({ rates: rate.rates(), current: 0 }));
  const look = useEffectEvent(() => {
    rate.see(charactersIn(items), Date.now());
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

/** How much an item holds does not change once it is complete. */
const known = new WeakMap<Item, number>();

function charactersIn(items: readonly Item[]): number {
  let total = 0;
  for (const item of items) {
    let characters = known.get(item);
    if (characters === undefined) {
      characters = item.kind === "assistant" ? charactersOf(item) : 0;
      known.set(item, characters);
    }
    total += characters;
  }
  return total;
}

function charactersOf(item: Extract<Item, { kind: "assistant" }>): number {
  return item.parts.reduce((total, part) => {
    if (part.type === "tool") return total + (part.call.inputText || JSON.stringify(part.call.input ?? "")).length;
    return total + (part.type === "other" ? 0 : part.text.length);
  }, 0);
}
