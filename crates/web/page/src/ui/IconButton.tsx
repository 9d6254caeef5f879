import type { ComponentProps } from "react";
import { Icon, type IconName } from "./Icon.tsx";

interface Props extends Omit<ComponentProps<"button">, "type" | "name"> {
  readonly icon: IconName;
  /** What it does, for those who do not see the icon. */
  readonly name: string;
}

/** A button with an icon, and with `children` behind it. Everything else is as in a `button`. */
export function IconButton({ icon, name, className, children, ...rest }: Props) {
  return (
    <button {...rest} type="button" className={className ? `icon-button ${className}` : "icon-button"} aria-label={name}>
      <Icon name={icon} />
      {children}
    </button>
  );
}
