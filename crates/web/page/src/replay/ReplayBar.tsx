import { count, counted, duration } from "../ui/format.ts";
import { Icon } from "../ui/Icon.tsx";
import { IconButton } from "../ui/IconButton.tsx";
import { RateChart } from "./RateChart.tsx";
import { saidAt } from "./timing.ts";
import { type Playing, type Recording, speeds } from "./useReplay.ts";

/** The step of the arrow keys. */
const stepMs = 100;

interface Props {
  readonly recording: Recording;
  readonly playing: Playing;
  /** Makes the server replay the agent at this speed, as a new agent. */
  readonly onAgain: (speed: number) => void;
  readonly onClose: () => void;
}

/** The slider for the time of an agent. Its track shows the tokens per second. */
export function ReplayBar({ recording, playing, onAgain, onClose }: Props) {
  const { timeline, events } = recording;
  const { moment } = playing;
  const said = saidAt(timeline, moment);
  return (
    <section className="replay" aria-label="Replay" data-testid="replay">
      <IconButton
        icon={playing.playing ? "pause" : "play"}
        data-testid="replay-play"
        name={playing.playing ? "Pause" : "Play"}
        onClick={() => playing.setPlaying(!playing.playing)}
      />
      <Track recording={recording} playing={playing} />
      <span className="replay-time" data-testid="replay-time">
        {duration(moment)} / {duration(timeline.length)}
        <small>
          {count(said)} of {counted(events.length, "event")}
        </small>
      </span>
      <Speed playing={playing} />
      <button
        type="button"
        className="button"
        data-testid="replay-as-agent"
        title="Replay as a new agent at this speed. All clients can follow it"
        onClick={() => onAgain(playing.speed)}
      >
        <Icon name="plus" /> Replay as a new agent
      </button>
      <IconButton icon="close" name="Close the replay" title="Close the replay" onClick={onClose} />
    </section>
  );
}

/** The position. Behind it, the tokens per second. */
function Track({ recording: { timeline, rates }, playing }: Pick<Props, "recording" | "playing">) {
  return (
    <div className="replay-track">
      <RateChart rates={rates} label={`Tokens per second, peak about ${Math.round(Math.max(0, ...rates))}`} />
      <input
        type="range"
        min={0}
        max={Math.max(1, timeline.length)}
        step={Math.min(stepMs, Math.max(1, timeline.length / 100))}
        value={playing.moment}
        data-testid="scrubber"
        aria-label="Position"
        aria-valuetext={`${duration(playing.moment)} of ${duration(timeline.length)}`}
        onChange={(event) => playing.seek(Number(event.target.value))}
      />
    </div>
  );
}

function Speed({ playing }: Pick<Props, "playing">) {
  return (
    <select
      aria-label="Speed"
      data-testid="replay-speed"
      value={playing.speed}
      onChange={(event) => playing.setSpeed(Number(event.target.value))}
    >
      {speeds.map((speed) => (
        <option key={speed} value={speed}>
          {speed}×
        </option>
      ))}
    </select>
  );
}
