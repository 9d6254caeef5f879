// An open request that is higher than the list is read from its top, not from its end.

export interface TallRequest {
  readonly id: string;
  /** The scroll position at which its row begins at the top of the list. */
  readonly top: number;
}

/** The newest open request, if the list cannot show all of it and of what follows. */
export function tallRequestIn(list: HTMLElement): TallRequest | undefined {
  const row = [...list.querySelectorAll('.question[data-state="open"]')].at(-1)?.closest<HTMLElement>(".row");
  if (!row) return undefined;
  const top = list.scrollTop + row.getBoundingClientRect().top - list.getBoundingClientRect().top;
  return list.scrollHeight - top > list.clientHeight + 1 ? { id: row.dataset.sequence ?? "", top } : undefined;
}

/** Shows the top of such a request in a picture that is aligned at its bottom. */
export function showTopOfRequest(picture: HTMLElement): void {
  picture.style.justifyContent = "flex-start";
  const request = tallRequestIn(picture);
  if (request) picture.scrollTop = request.top;
  else picture.style.justifyContent = "";
}
