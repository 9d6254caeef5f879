import type { ReactNode, RefObject } from "react";

interface Props {
  readonly ref: RefObject<HTMLDialogElement | null>;
  /** A class for its content. */
  readonly className?: string;
  /** The id of its heading. */
  readonly title: string;
  readonly testId: string;
  readonly onClose?: () => void;
  readonly children: ReactNode;
}

/** A dialog that is a sheet at the bottom of a small screen. A click beside it closes it. */
export function SheetDialog({ ref, className = "", title, testId, onClose, children }: Props) {
  return (
    <dialog
      ref={ref}
      className={`dialog sheet ${className}`.trim()}
      aria-labelledby={title}
      data-testid={testId}
      onClose={onClose}
      // A click on the backdrop hits the dialog itself.
      onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}
    >
      {children}
    </dialog>
  );
}
