/** The driven runs of a stack of one machine, as files under PETREL_HOME, which only its user can write. */
import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { runIdPattern } from '../../core/ids.ts';
import { RUN_KINDS } from '../../core/run-kinds.ts';
import { homeJsonNames, readHomeJson, writeHomeJson } from '../home-json.ts';
import type { DrivenRun, DrivenRuns, NotedRun } from './driven-run.ts';
import { isAlive, ownIdentity } from './process.ts';

const fileSchema = z.object({
  runId: z.string(),
  store: z.string(),
  kind: z.enum(RUN_KINDS),
  /** The command that is about to start the run. The file stays until that process dies. */
  startedBy: z.object({ pid: z.int(), startTime: z.string() }).optional(),
  /** Differs from note to note. Absent in those of older versions. */
  note: z.string().optional(),
});

export class HomeRuns implements DrivenRuns {
  readonly place: string;
  readonly #folder: string;

  constructor(home: string) {
    this.#folder = join(home, 'driven');
    this.place = join(this.#folder, '<run>.json');
  }

  async note(run: DrivenRun): Promise<void> {
    this.#write(run);
  }

  async noteToStart(run: DrivenRun): Promise<void> {
    const { pid, startTime } = ownIdentity();
    this.#write({ ...run, startedBy: { pid, startTime } });
  }

  async drives({ runId, store }: Pick<DrivenRun, 'runId' | 'store'>): Promise<boolean> {
    return runIdPattern.test(runId) && this.#read(`${runId}.json`)?.store === store;
  }

  /** Throws RetryableError `HomeUnreadable`. */
  async all(): Promise<readonly NotedRun[]> {
    return homeJsonNames(this.#folder).flatMap((name) => {
      const found = this.#read(name);
      if (found === undefined) return [];
      const { startedBy, note, ...run } = found;
      const isStarting = startedBy !== undefined && isAlive(startedBy);
      return { ...run, isStarting, notes: note === undefined ? [] : [note] };
    });
  }

  async forget({ runId, notes }: NotedRun): Promise<void> {
    // A resume may have noted the run again since its end was read. Without the note nobody would drive it.
    if (this.#read(`${runId}.json`)?.note !== notes[0]) return;
    rmSync(join(this.#folder, `${runId}.json`), { force: true });
  }

  #write({ runId, store, kind, startedBy }: z.infer<typeof fileSchema>): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const content = { runId, store, kind, ...(startedBy && { startedBy }), note: randomUUID() };
    writeHomeJson(join(this.#folder, `${runId}.json`), content);
  }

  #read(name: string): z.infer<typeof fileSchema> | undefined {
    return fileSchema.safeParse(readHomeJson(join(this.#folder, name))).data;
  }
}
