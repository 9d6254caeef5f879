import { type ReactNode, type RefObject, useId } from "react";

import { IconButton } from "../ui/IconButton.tsx";
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
      <IconButton icon="more" name={name} aria-haspopup="dialog" data-testid="details" onClick={() => ref.current?.showModal()} />
      <SheetDialog ref={ref} title={title} testId="sheet">
        <div className="sheet-inner">
          <div className="sheet-head">
            <h2 id={title}>{name}</h2>
            <IconButton icon="close" name="Close" onClick={() => ref.current?.close()} />
          </div>
          {children}
        </div>
      </SheetDialog>
    </>
  );
}
