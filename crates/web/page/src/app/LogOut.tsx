import { useState } from "react";

import { pathOf } from "../connection/address.ts";
import { forgetAttached } from "../prompt/attached.ts";
import { IconButton } from "../ui/IconButton.tsx";
import { forgetTexts } from "../ui/tab-texts.ts";
import { logOut } from "./token.ts";

interface Props {
  /** Called when the session has ended. By default, the page is loaded again, as a visitor sees it. */
  readonly onDone?: () => void;
}

/**
 * Ends the session of this browser. All its tabs share the session, so each of them asks for a login as soon as the
 * server refuses one of its requests. This tab also forgets what was not sent.
 */
export function LogOutButton({ onDone = leave }: Props) {
  const [failure, setFailure] = useState<string>();
  const end = async () => {
    setFailure(undefined);
    if (!(await logOut())) return setFailure("Cannot log out, because the server cannot be reached or has refused the request. Try again later.");
    forgetTexts();
    forgetAttached();
    onDone();
  };
  return (
    <>
      <IconButton icon="leave" data-testid="log-out" name="Log out" title="Log out" onClick={() => void end()} />
      {failure && (
        <span className="bar-failure" role="alert">
          {failure}
        </span>
      )}
    </>
  );
}

function leave(): void {
  location.assign(pathOf(null));
}
