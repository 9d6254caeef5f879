import { useTokenrail } from "@tokenrail/client/react";
import { type ChangeEvent, useState } from "react";

import { useFailure } from "../connection/failure.ts";
import { Failure } from "../ui/Failure.tsx";
import { Icon } from "../ui/Icon.tsx";

/** Imports an agent that was exported from this or another server. */
export function ImportButton({ onImported }: { readonly onImported: (id: string) => void }) {
  const client = useTokenrail();
  const [failure, setFailure] = useFailure();
  const [busy, setBusy] = useState(false);
  const take = async ({ target }: ChangeEvent<HTMLInputElement>) => {
    const file = target.files?.[0];
    if (!file) return;
    // The same file can be chosen again.
    target.value = "";
    setFailure(undefined);
    setBusy(true);
    try {
      onImported((await client.importAgent(file)).id);
    } catch (error) {
      setFailure(error as Error);
      setBusy(false);
    }
  };
  return (
    <div className="import">
      <div className="import-label">
        Or
        <label className="button">
          <input type="file" accept=".json,application/json" disabled={busy} data-testid="import" onChange={take} />
          <Icon name="arrowUp" /> {busy ? "Importing…" : "Import an exported agent"}
        </label>
      </div>
      {failure && <Failure error={failure} />}
    </div>
  );
}
