/**
 * The runs that this stack drives, as files under PETREL_HOME: so that one whose workflow is gone with the database of
 * the Temporal server is started again by itself. A list of hints: what a run's state is stands in its store.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const drivenRun = z.object({ runId: z.string(), store: z.string(), kind: z.enum(['rl', 'sft']) });
export type DrivenRun = Readonly<z.infer<typeof drivenRun>>;

const folderOf = (home: string): string => join(home, 'driven');

export function noteDrivenRun(home: string, run: DrivenRun): void {
  mkdirSync(folderOf(home), { recursive: true, mode: 0o700 });
  const file = join(folderOf(home), `${run.runId}.json`);
  writeFileSync(`${file}.tmp`, JSON.stringify(run), { mode: 0o600 });
  renameSync(`${file}.tmp`, file);
}

export function forgetDrivenRun(home: string, runId: string): void {
  rmSync(join(folderOf(home), `${runId}.json`), { force: true });
}

/** What cannot be read is no hint. */
export function drivenRuns(home: string): DrivenRun[] {
  let names: string[];
  try {
    names = readdirSync(folderOf(home)).filter((name) => name.endsWith('.json'));
  } catch {
    return []; // nothing was driven yet
  }
  return names.flatMap((name) => {
    try {
      return [drivenRun.parse(JSON.parse(readFileSync(join(folderOf(home), name), 'utf8')))];
    } catch {
      return [];
    }
  });
}
