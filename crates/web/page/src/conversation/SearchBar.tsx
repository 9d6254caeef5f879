import { type KeyboardEvent, useEffect, useRef } from "react";

import { Icon } from "../ui/Icon.tsx";
import { IconButton } from "../ui/IconButton.tsx";

interface Props {
  readonly words: string;
  /** The index of the current match, and the number of matches. */
  readonly at: number;
  readonly places: number;
  readonly onWords: (words: string) => void;
  readonly onMove: (by: 1 | -1) => void;
  readonly onClose: () => void;
}

export function SearchBar({ words, at, places, onWords, onMove, onClose }: Props) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const key = (event: KeyboardEvent) => {
    if (event.key === "Escape") onClose();
    else if (event.key === "Enter") onMove(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
  };
  return (
    <search className="search">
      <Icon name="search" />
      <input
        ref={input}
        type="search"
        aria-label="Search the conversation"
        placeholder="Search the conversation"
        data-testid="search"
        value={words}
        onChange={(event) => onWords(event.target.value)}
        onKeyDown={key}
      />
      <span className="muted" role="status" data-testid="search-count">
        {words.trim() ? `${places ? at + 1 : 0} of ${places}` : ""}
      </span>
      <IconButton icon="arrowUp" className="small" name="Previous match" disabled={!places} onClick={() => onMove(-1)} />
      <IconButton icon="arrowDown" className="small" name="Next match" disabled={!places} onClick={() => onMove(1)} />
      <IconButton icon="close" className="small" name="Close the search" onClick={onClose} />
    </search>
  );
}
