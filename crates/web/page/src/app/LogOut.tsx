import { Icon } from "../ui/Icon.tsx";
import { logOut } from "./token.ts";

/** Ends the session of this browser, so that every tab asks for a login at its next request. */
export function LogOutButton() {
  return (
    <button type="button" className="icon-button" data-testid="log-out" aria-label="Log out" title="Log out" onClick={() => void logOut()}>
      <Icon name="leave" />
    </button>
  );
}
