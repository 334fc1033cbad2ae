#!/usr/bin/env node
// Starts the built command line; before set-up there is none.
import { existsSync } from 'node:fs';

const main = new URL('../dist/cli/main.js', import.meta.url);
if (existsSync(main)) {
  const { main: run } = await import(main.href);
  await run(process.argv.slice(2));
} else {
  console.error('petrel: not set up yet\n  hint: npm run setup');
  process.exitCode = 2;
}
