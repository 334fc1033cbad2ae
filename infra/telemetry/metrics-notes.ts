/**
 * Which runs have a metrics file (`trainer.logger: file`) and where, as notes under PETREL_HOME: records hold no path
 * of a machine. The command that starts, forks or resumes a run writes the note, and the control process writes the
 * file.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { loggersOf } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { homeJsonNames, readHomeJson, writeHomeJson } from '../home-json.ts';

const metricsNote = z.object({ runId: z.string(), store: z.string(), path: z.string() });
export type MetricsNote = Readonly<z.infer<typeof metricsNote>>;

const folderOf = (home: string): string => join(home, 'metrics-files');

/** Notes the file of a run whose recipe asks for one. Returns its path; undefined when the recipe asks for none. */
export function noteMetricsFile(
  home: string,
  { runId, store }: Pick<MetricsNote, 'runId' | 'store'>,
  recipe: Recipe,
  cwd: string,
): string | undefined {
  if (!loggersOf(recipe).includes('file')) return undefined;
  const project = recipe.trainer.project_name.replace(/[^\w-]+/g, '-');
  const note = { runId, store, path: join(cwd, project, `${runId}.jsonl`) };
  writeNote(home, note);
  return note.path;
}

export function writeNote(home: string, note: MetricsNote): void {
  mkdirSync(folderOf(home), { recursive: true, mode: 0o700 });
  writeHomeJson(join(folderOf(home), `${note.runId}.json`), note);
}

/** The file is complete: the run has ended. */
export function forgetMetricsFile(home: string, runId: string): void {
  rmSync(join(folderOf(home), `${runId}.json`), { force: true });
}

/** Files of another form are left out. Throws RetryableError `HomeUnreadable`. */
export function metricsNotes(home: string): MetricsNote[] {
  const folder = folderOf(home);
  return homeJsonNames(folder).flatMap((name) => metricsNote.safeParse(readHomeJson(join(folder, name))).data ?? []);
}
