import { type AgentMessage, type Client, emptyTranscript, type Transcript } from "@tokenrail/client";
import { useEffect, useMemo, useState } from "react";

import { Player } from "./player.ts";
import { ratesOf } from "./rate.ts";
import { playedTo, saidAt, type Timeline, timelineOf } from "./timing.ts";

export const speeds = [0.5, 1, 2, 4, 8, 16];

const chartParts = 200;

export interface Recording {
  readonly events: readonly AgentMessage[];
  readonly timeline: Timeline;
  readonly rates: readonly number[];
  readonly player: Player;
}

/** Reads every event of an agent, page by page. */
export function useRecording(
  client: Client,
  agentId: string,
): { recording?: Recording; loaded: number; error?: Error } {
  const [loaded, setLoaded] = useState(0);
  const [error, setError] = useState<Error>();
  const [recording, setRecording] = useState<Recording>();
  useEffect(() => {
    const leaving = new AbortController();
    const read = async () => {
      const events: AgentMessage[] = [];
      for (let since = 0, head = 1; since < head;) {
        const page = await client.events(agentId, { since, signal: leaving.signal });
        events.push(...page.messages);
        [since, head] = [page.upTo, page.head];
        setLoaded(events.length);
        if (page.messages.length === 0) break;
      }
      const timeline = timelineOf(events);
      setRecording({ events, timeline, rates: ratesOf(events, timeline, chartParts), player: new Player(events) });
    };
    read().catch((failure: Error) => {
      if (!leaving.signal.aborted) setError(failure);
    });
    return () => leaving.abort();
  }, [client, agentId]);
  return { loaded, ...(recording && { recording }), ...(error && { error }) };
}

export interface Playing {
  readonly moment: number;
  readonly playing: boolean;
  readonly speed: number;
  readonly seek: (moment: number) => void;
  readonly setPlaying: (playing: boolean) => void;
  readonly setSpeed: (speed: number) => void;
}

/** The moment that is shown, and the controls that move it. */
export function usePlaying(timeline: Timeline | undefined): Playing {
  const [moment, setMoment] = useState(0);
  const [playing, setPlaying] = useState(true);
  const [speed, setSpeed] = useState(1);
  useEffect(() => {
    if (!timeline || !playing) return;
    let before = performance.now();
    let frame = requestAnimationFrame(function tick(now) {
      const elapsed = Math.max(0, now - before);
      before = now;
      setMoment((from) => playedTo(timeline, from, elapsed, speed));
      frame = requestAnimationFrame(tick);
    });
    return () => cancelAnimationFrame(frame);
  }, [timeline, playing, speed]);
  const ended = timeline !== undefined && moment >= timeline.length;
  useEffect(() => {
    if (ended) setPlaying(false);
  }, [ended]);
  const play = (wanted: boolean) => {
    if (wanted && ended) setMoment(0);
    setPlaying(wanted);
  };
  return { moment, playing, speed, seek: setMoment, setPlaying: play, setSpeed };
}

/** The transcript at the moment that is shown. */
export function useTranscriptAt(recording: Recording | undefined, moment: number): Transcript {
  const said = recording ? saidAt(recording.timeline, moment) : 0;
  return useMemo(() => recording?.player.after(said) ?? emptyTranscript, [recording, said]);
}
