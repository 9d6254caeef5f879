import type { IconName } from "../ui/Icon.tsx";
import { IconButton } from "../ui/IconButton.tsx";

interface Props {
  readonly icon: IconName;
  /** The end of the test id. */
  readonly id: string;
  readonly name: string;
  readonly hint?: string;
  readonly on: boolean;
  readonly set: (on: boolean) => void;
}

/** An action of the agent's header that is on or off. On a phone, the sheet of actions shows its name. */
export function Toggle({ icon, id, name, hint = name, on, set }: Props) {
  return (
    <IconButton
      icon={icon}
      name={name}
      title={hint}
      aria-pressed={on}
      data-testid={`toggle-${id}`}
      onClick={() => set(!on)}
    >
      <span className="action-name">{name}</span>
    </IconButton>
  );
}
