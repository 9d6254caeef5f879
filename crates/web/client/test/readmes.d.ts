// The React examples of the READMEs: see vitest.config.ts.
declare module "readme:*" {
  export default function App(): import("react").ReactNode;
}
