import { type ReactNode, type RefObject, useId } from "react";

import { Icon } from "../ui/Icon.tsx";
import { SheetDialog } from "../ui/SheetDialog.tsx";

interface Props {
  readonly ref: RefObject<HTMLDialogElement | null>;
  readonly name: string;
  readonly children: ReactNode;
}

/** A button, and a sheet at the bottom of a small screen that it opens. */
export function Sheet({ ref, name, children }: Props) {
  const title = useId();
  return (
    <>
      <button
        type="button"
        className="icon-button"
        aria-label={name}
        aria-haspopup="dialog"
        data-testid="details"
        onClick={() => ref.current?.showModal()}
      >
        <Icon name="more" />
      </button>
      <SheetDialog ref={ref} title={title} testId="sheet">
        <div className="sheet-inner">
          <div className="sheet-head">
            <h2 id={title}>{name}</h2>
            <button type="button" className="icon-button" aria-label="Close" onClick={() => ref.current?.close()}>
              <Icon name="close" />
            </button>
          </div>
          {children}
        </div>
      </SheetDialog>
    </>
  );
}
