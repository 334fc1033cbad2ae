/**
 * The requests to an object store for a look at a run, short or long. Rows: `head`, where the log ends; `status`, as
 * `petrel status` and `petrel ls` show it; `watch`, one of the looks of an attached `petrel run` after its first;
 * `janitor`, a pass over a run that an earlier pass has read.
 */
import { runSummary } from '../../api/runs/summary.ts';
import { passOver } from '../../log/retention/pass.ts';
import { RunLog } from '../../log/run/run-log.ts';
import { CountedObjects } from '../log/counted-objects.ts';
import { generateLog } from '../log/log-generator.ts';
import type { Measurement, RowInfo, Values } from '../measurement.ts';

const sizes = [
  { name: 'short', positions: 100, terms: 1 },
  { name: 'long', positions: 10_000, terms: 200 },
] as const;

/** `keep`: as `trainer.max_actor_ckpt_to_keep`, so that the janitor has work. */
const shape = { checkpointEvery: 20, validationEvery: 10, state: 'running', keep: 2 } as const;

const looks = {
  head: (log: RunLog) => log.head(),
  status: async (log: RunLog) => runSummary({ runId: log.runId, log, record: await log.run() }),
  watch: watchOnce,
  janitor: (log: RunLog) => passOver(log, { now: new Date(), graceMs: 0 }),
} as const;

const rows: readonly RowInfo[] = Object.keys(looks).flatMap((look) =>
  sizes.map(({ name }): RowInfo => ({ name: `requests.${look}.${name}`, unit: 'requests' })),
);

export const requestsOfLooks: Measurement = {
  name: 'requests',
  rows,
  turns: 1,
  async open() {
    return {
      about: sizes.map(({ name, positions, terms }) => `${name}: ${positions} positions, ${terms} terms`).join('; '),
      turn: async () => Object.assign({}, ...(await Promise.all(sizes.map(measure)))) as Values,
      close: async () => {},
    };
  },
};

async function measure({ name, ...size }: (typeof sizes)[number]): Promise<Values> {
  const { runId, objects } = generateLog({ ...shape, ...size });
  const store = new CountedObjects(objects);
  const values: Record<string, number> = {};
  for (const [look, ask] of Object.entries(looks)) {
    const log = new RunLog(store, runId);
    // A janitor's first pass reads every record that is new to it, and a watcher's first look finds the end of the log.
    if (look === 'janitor') for (let pass = 0; pass < 3; pass++) await ask(new RunLog(store, runId));
    if (look === 'watch') await ask(log);
    store.requests();
    await ask(log);
    values[`requests.${look}.${name}`] = store.requests().length;
  }
  return values;
}

async function watchOnce(log: RunLog): Promise<void> {
  await log.status.newest();
  const head = await log.head();
  if (head !== undefined) await log.evaluations.newest(head);
}
