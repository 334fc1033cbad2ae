#!/usr/bin/env node
// Starts the built command line. A checkout is set up by `npm run setup`; a package that npm installed sets itself up,
// in PETREL_HOME, before its first command.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const words = process.argv.slice(2);
const main = new URL('../dist/programs/petrel.js', import.meta.url);
const isCheckout = existsSync(new URL('../tsconfig.json', import.meta.url));
// A machine that joins brings no servers; it fetches the build of its stack.
const joins = words[0] === 'worker';
const onlyAsks = words.length === 0 || words.some((word) => ['--help', '-h', '--version', '-V', 'help'].includes(word));

if (!existsSync(main)) {
  console.error('petrel: not set up yet; while another set-up runs, this command waits for it\n  hint: npm run setup');
  process.exitCode = 2;
} else if (isCheckout || onlyAsks || joins || setUp()) {
  const { main: run } = await import(main.href);
  await run(words);
}

/** False when set-up failed; it has said why. */
function setUp() {
  const bootstrap = fileURLToPath(new URL('../setup/main.mjs', import.meta.url));
  const { status } = spawnSync(process.execPath, [bootstrap, '--quiet'], { stdio: ['ignore', 'inherit', 'inherit'] });
  process.exitCode = status === 0 ? undefined : 2;
  return status === 0;
}
