// The examples that READMEs show.

/** The React example of a README. */
export function exampleOf(readme: string): string {
  const code = /^```tsx\n([^]*?)^```$/m.exec(readme)?.[1];
  if (!code) throw new Error("the README has no React example");
  return code;
}

/** How Vite's template `react-ts` is compiled, and as strictly as any version of it was. */
export const TEMPLATE = {
  target: "ES2023",
  lib: ["ES2023", "DOM", "DOM.Iterable"],
  module: "ESNext",
  types: [],
  skipLibCheck: true,
  moduleResolution: "Bundler",
  allowImportingTsExtensions: true,
  verbatimModuleSyntax: true,
  moduleDetection: "force",
  noEmit: true,
  jsx: "react-jsx",
  strict: true,
  noUnusedLocals: true,
  noUnusedParameters: true,
  erasableSyntaxOnly: true,
  noFallthroughCasesInSwitch: true,
  noUncheckedSideEffectImports: true,
};
