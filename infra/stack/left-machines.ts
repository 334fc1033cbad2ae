/** Machines that were refused or left with a reason, in a file of the stack: `petrel status` shows them for a day. */
import { join } from 'node:path';
import { z } from 'zod';
import { readHomeJson, writeHomeJson } from '../home-json.ts';
import { stackFolder } from './state.ts';

const leftMachine = z.object({
  pool: z.string(),
  host: z.string(),
  code: z.string(),
  message: z.string(),
  /** ISO time of the last time. */
  at: z.string(),
  times: z.int(),
});
export type LeftMachine = Readonly<z.infer<typeof leftMachine>>;

/** A machine without a valid token can cause entries. */
const most = 20;
const shownMs = 24 * 3600 * 1000;

const fileOf = (home: string): string => join(stackFolder(home), 'left-machines.json');

/** Newest first. */
export function leftMachines(home: string, now = Date.now()): LeftMachine[] {
  const all = z.array(leftMachine).safeParse(readHomeJson(fileOf(home))).data ?? [];
  return all.filter(({ at }) => now - Date.parse(at) < shownMs);
}

/** Equal ones of a host are one entry. */
export function noteLeftMachine(home: string, left: Omit<LeftMachine, 'at' | 'times'>): void {
  const isSame = (one: LeftMachine) => one.host === left.host && one.pool === left.pool && one.code === left.code;
  const known = leftMachines(home);
  const times = 1 + (known.find(isSame)?.times ?? 0);
  const entry: LeftMachine = { ...left, at: new Date().toISOString(), times };
  writeHomeJson(fileOf(home), [entry, ...known.filter((one) => !isSame(one))].slice(0, most));
}
