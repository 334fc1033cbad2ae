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

type Left = Omit<LeftMachine, 'at' | 'times'>;

/** Time between two writes of the file: a machine without a valid token may knock all the time. */
const writeEveryMs = 1_000;

/** Writes entries down, equal ones of a host as one. Of many within a second the first ones are kept. */
export class LeftMachines {
  readonly #home: string;
  readonly #waiting = new Map<string, { readonly left: Left; times: number }>();
  #timer: NodeJS.Timeout | undefined;

  constructor(home: string) {
    this.#home = home;
  }

  note(left: Left): void {
    const name = nameOf(left);
    const waiting = this.#waiting.get(name);
    if (waiting !== undefined) waiting.times += 1;
    else if (this.#waiting.size < most) this.#waiting.set(name, { left, times: 1 });
    this.#timer ??= setTimeout(() => this.write(), writeEveryMs);
  }

  /** Writes the file at once. */
  write(now = new Date()): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const known = leftMachines(this.#home, now.getTime());
    const noted = [...this.#waiting.values()].map(({ left, times }): LeftMachine => {
      const before = known.find((one) => nameOf(one) === nameOf(left))?.times ?? 0;
      return { ...left, at: now.toISOString(), times: before + times };
    });
    const others = known.filter((one) => !this.#waiting.has(nameOf(one)));
    this.#waiting.clear();
    writeHomeJson(fileOf(this.#home), [...noted, ...others].slice(0, most));
  }
}

const nameOf = ({ host, pool, code }: Left): string => `${host} ${pool} ${code}`;
