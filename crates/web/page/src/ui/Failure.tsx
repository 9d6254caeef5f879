import { TokenrailError } from "@tokenrail/client";

import { sentence } from "./format.ts";
import { Icon } from "./Icon.tsx";

/** An error message, with the invalid fields. */
export function Failure({ error }: { readonly error: Error }) {
  const code = error instanceof TokenrailError ? error.code : undefined;
  return (
    <p className="problem" role="alert">
      <Icon name="alert" />
      <span>
        {sentence(error.message)}
        {code && <code className="detail">{code}</code>}
      </span>
    </p>
  );
}
