import { useTokenrail } from "@tokenrail/client/react";
import type { ChangeEvent } from "react";

import { useFailure } from "../app/failure.ts";
import { Failure } from "./LaunchForm.tsx";

/** Imports an agent that was exported from this or another server. */
export function ImportButton({ onImported }: { readonly onImported: (id: string) => void }) {
  const client = useTokenrail();
  const [failure, setFailure] = useFailure();
  const take = async (event: ChangeEvent<HTMLInputElement>) => {
    const file = event.target.files?.[0];
    if (!file) return;
    setFailure(undefined);
    try {
      onImported((await client.importAgent(file)).id);
    } catch (error) {
      setFailure(error as Error);
    }
  };
  return (
    <div className="import">
      <label className="import-label">
        Or import an exported agent
        <input type="file" accept=".json,application/json" data-testid="import" onChange={take} />
      </label>
      {failure && <Failure error={failure} />}
    </div>
  );
}
