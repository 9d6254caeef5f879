import { createContext, useContext } from "react";

/** The working directory of the agent that is shown. Empty if it is not known. */
export const Folder = createContext("");

/** A path relative to a folder, if it is below it and says so without a detour. */
export function shortPath(path: string, folder: string): string {
  const base = folder.endsWith("/") ? folder : `${folder}/`;
  if (!folder || !path.startsWith(base)) return path;
  const rest = path.slice(base.length);
  return rest === "" || rest.split("/").some((part) => part === "" || part === "..") ? path : rest;
}

export function useShortPath(path: string): string {
  return shortPath(path, useContext(Folder));
}
