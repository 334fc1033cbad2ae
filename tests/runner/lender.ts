/** Lends homes with stacks to the test files of a run (tests/lent-homes.ts), and ends them after the last file. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { strangers } from '../../infra/stack/adoption.ts';
import { stopStack } from '../../infra/stack/index.ts';
import { lentHomes, lentHomesVariable } from '../lent-homes.ts';

export class Lender {
  readonly #folder = realpathSync(mkdtempSync(join(tmpdir(), 'petrel-lent-')));

  /** Processes of this one that run tests may borrow from here on. */
  constructor() {
    process.env[lentHomesVariable] = this.#folder;
  }

  /** Stops all stacks. Rejects when a process of one is left. */
  async end(): Promise<void> {
    const homes = lentHomes(this.#folder);
    await Promise.all(homes.map((home) => stopStack(home)));
    const left = homes.flatMap((home) => strangers(home, []));
    if (left.length > 0) throw new Error(`lent stacks left processes: ${left.map(({ pid }) => pid).join(' ')}`);
    if (process.env['PETREL_KEEP'] === undefined) rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 });
    else console.log(`kept: ${this.#folder}`);
  }
}
