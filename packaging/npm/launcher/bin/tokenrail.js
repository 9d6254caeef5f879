#!/usr/bin/env node
// Runs the program from the package for this machine, which npm installs as an optional dependency.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { constants } from "node:os";
import process from "node:process";

const name = `@tokenrail/${process.platform}-${process.arch}`;

function programOf(name) {
  try {
    return createRequire(import.meta.url).resolve(`${name}/bin/tokenrail`);
  } catch {
    process.stderr.write(
      `error: the package ${name} is missing\n` +
        "It is an optional dependency of tokenrail: install without --omit=optional. If this kind of machine has no " +
        "such package, build Tokenrail from its sources.\n",
    );
    process.exit(1);
  }
}

const program = programOf(name);
const options = process.argv.slice(2);
if (process.execve) {
  // Node 22.15 and later: the program takes the place of this process.
  process.execve(program, ["tokenrail", ...options], process.env);
}

const child = spawn(program, options, { stdio: "inherit" });
// A terminal sends Ctrl-C to the program too, so it must not be sent a second time: a second Ctrl-C means more.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => {
  process.stderr.write(`error: cannot start ${program}: ${error.message}\n`);
  process.exit(1);
});
child.on("exit", (code, signal) => process.exit(code ?? 128 + constants.signals[signal]));
