// The examples that READMEs show.

/** The React example of a README. */
export function exampleOf(readme: string): string {
  const code = /^```tsx\n([^]*?)^```$/m.exec(readme)?.[1];
  if (!code) throw new Error("the README has no React example");
  return code;
}
