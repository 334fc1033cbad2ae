/** pip, of a Python on this machine, with those settings of its user that say where packages are: chosen_pip.py. */

import { spawnSync } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { checkoutRoot } from './places.mjs';
import { runProgram } from './programs.mjs';
import { isExecutable } from './toolchain.mjs';

let known;

/**
 * The first python3 on PATH that has pip, else the system's: an environment made by uv, or by `python3 -m venv
 * --without-pip`, has none. Undefined where no Python has it. `-E`: without Python's variables, such as PYTHONHOME.
 */
export function pythonWithPip() {
  const folders = [...(process.env.PATH ?? '').split(delimiter).filter(Boolean), '/usr/local/bin', '/usr/bin'];
  const found = [...new Set(folders)].map((folder) => join(folder, 'python3')).filter(isExecutable);
  known ??= found.find((path) => spawnSync(path, ['-E', '-c', 'import pip'], { stdio: 'ignore' }).status === 0);
  return known;
}

/** Runs a command of pip. Throws SetupError that ends with what pip says. */
export async function runPip(args, { what, hint }) {
  const program = join(checkoutRoot, 'rewards/host/chosen_pip.py');
  try {
    return await runPython([program, ...args], { what });
  } catch (error) {
    error.hint = hintOf(error.output ?? '', hint);
    throw error;
  }
}

/** Runs this Python without Python's own variables. */
export const runPython = (args, { what }) => runProgram(pythonWithPip() ?? 'python3', ['-E', ...args], { what });

const usual = 'check the network, and what `python3 -m pip config list` names; then run this again';

/** The reason comes last, since it is what a person reads first. */
function hintOf(output, hint = usual) {
  const said = output
    .split('\n')
    .filter((line) => /^(ERROR|WARNING|.*Error):/.test(line))
    .at(-1);
  if (/DO NOT MATCH THE HASHES/i.test(output))
    return 'the package index gives other bytes than petrel pins: do not use them';
  if (/no-index|looking in links/i.test(output) && /No matching distribution/.test(output) && !/index:/i.test(output))
    return `the settings of pip (no-index, find-links) name no place that has it: put the wheel there, or remove no-index`;
  return said === undefined ? hint : `pip says: ${said.replace(/^ERROR: /, '')}\n→ ${hint}`;
}
