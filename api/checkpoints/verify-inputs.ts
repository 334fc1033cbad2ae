/** Reading what a run needs besides its log: the model's files and the rows, each by its digest. */
import { errorToJson } from '../../core/errors.ts';
import { checkModelFile, readModelManifest } from '../../log/inputs/model-facts.ts';
import { checkDataset } from '../../log/inputs/datasets.ts';
import type { RunLog } from '../../log/run/run-log.ts';

export interface InputVerdict {
  readonly what: string;
  readonly ok: boolean;
  readonly bytes: number;
  readonly problem?: string;
}

/** The model, the reference, the teacher, the rows to train on and to validate on, as far as the run has them. */
export async function verifyInputs({
  log,
  say,
}: {
  readonly log: RunLog;
  readonly say: (text: string) => void;
}): Promise<InputVerdict[]> {
  const { store } = log;
  const { model, reference, teacher, train, validation } = (await log.revision()).inputs;
  say('reading the model and the rows');
  const readModel = async (digest: string) => {
    const files = await readModelManifest(store, digest);
    for (const file of files) await checkModelFile(store, digest, file);
    return files.reduce((sum, { bytes }) => sum + bytes, 0);
  };
  const readRows = (digest: string) => checkDataset(store, digest);
  const all: readonly (readonly [string, string | undefined, (digest: string) => Promise<number>])[] = [
    ['model', model, readModel],
    ['reference', reference, readModel],
    ['teacher', teacher, readModel],
    ['training rows', train, readRows],
    ['validation rows', validation, readRows],
  ];
  const verdicts: InputVerdict[] = [];
  for (const [what, digest, read] of all)
    if (digest !== undefined) verdicts.push(await judge(what, () => read(digest)));
  return verdicts;
}

async function judge(what: string, read: () => Promise<number>): Promise<InputVerdict> {
  try {
    return { what, ok: true, bytes: await read() };
  } catch (error) {
    return { what, ok: false, bytes: 0, problem: errorToJson(error).message };
  }
}
