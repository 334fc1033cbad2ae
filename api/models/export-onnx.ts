/** A sequence classifier of transformers as ONNX, compared with transformers before it appears. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { at } from '../../core/at.ts';
import { InvalidInputError } from '../../core/errors.ts';
import { processEnvironment } from '../../infra/environment.ts';
import { packageRoot } from '../../infra/home.ts';
import { OnnxClassifier, onnxFile } from '../../infra/onnx/classifier.ts';
import { writeNewFolder } from '../../models/new-folder.ts';
import { companionFiles, readConfigJson } from '../../models/folder.ts';

export interface ExportedOnnx {
  /** The class in transformers. */
  readonly class: string;
  readonly bytes: number;
  readonly sequences: number;
  /** Largest difference from transformers' scores, in units of the larger of the score and 1. */
  readonly difference: number;
}

/** Rounding of float32 over a few layers is some 1e-6; a wrong graph differs in the first digits. */
const mostDifference = 1e-3;

const exported = z.union([
  z.object({ refused: z.string() }),
  z.object({
    class: z.string(),
    padToken: z.int(),
    sequences: z.array(z.array(z.int())).min(1),
    scores: z.array(z.number()),
  }),
]);

/**
 * Writes the folder `out` with model.onnx, config.json and tokenizer of `from`. `python` has the packages of
 * models/onnx/requirements.txt. Throws InvalidInputError when they are missing, when `from` is no reward model, and
 * when the written file does not give transformers' scores.
 */
export async function exportOnnx(from: string, out: string, python: string): Promise<ExportedOnnx> {
  await readConfigJson(from);
  let result: ExportedOnnx | undefined;
  await writeNewFolder(out, async (partial) => {
    const made = await runExport(python, from, partial);
    if ('refused' in made) throw new InvalidInputError(`${from}: ${made.refused}`, { where: from });
    const present = new Set(await readdir(from));
    for (const name of ['config.json', ...companionFiles])
      if (present.has(name)) await copyFile(join(from, name), join(partial, name));
    const difference = await largestDifference(partial, made);
    if (!(difference <= mostDifference))
      throw new InvalidInputError(
        `${from}: its scores as ONNX differ from those of transformers by up to ${difference}: this model cannot be exported`,
        { where: from },
      );
    const { size: bytes } = await stat(join(partial, onnxFile));
    result = { class: made.class, bytes, sequences: made.sequences.length, difference };
  });
  if (result === undefined) throw new Error('a written folder has a result');
  return result;
}

type Made = Exclude<z.infer<typeof exported>, { refused: string }>;

/** One by one, and padded together. */
async function largestDifference(folder: string, { padToken, sequences, scores }: Made): Promise<number> {
  const tokens = sequences.map((ids) => Int32Array.from(ids));
  const classifier = await OnnxClassifier.open(folder, { threads: 1, padToken });
  try {
    const alone = await classifier.score(tokens, { tokens: 1, sequences: 1 });
    const together = await classifier.score(tokens, { tokens: 1 << 16, sequences: tokens.length });
    const differences = scores.flatMap((score, s) =>
      [at(alone, s), at(together, s)].map((own) => Math.abs(own - score) / Math.max(1, Math.abs(score))),
    );
    return Math.max(...differences);
  } finally {
    await classifier.close();
  }
}

const keptErrorCharacters = 4_000;

async function runExport(python: string, from: string, to: string): Promise<z.infer<typeof exported>> {
  const folder = join(packageRoot(), 'models/onnx');
  const hint = `${python} -m pip install -r ${join(folder, 'requirements.txt')}; PETREL_PYTHON chooses another Python`;
  const child = spawn(python, [join(folder, 'export.py'), from, to], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...processEnvironment(), HF_HUB_OFFLINE: '1' },
  });
  let [output, errors] = ['', ''];
  child.stdout.on('data', (text: Buffer) => (output += text.toString()));
  child.stderr.on('data', (text: Buffer) => (errors = (errors + text.toString()).slice(-keptErrorCharacters)));
  const [code] = (await once(child, 'close').catch((cause: unknown) => {
    throw new InvalidInputError(`${python} does not run`, { hint, cause });
  })) as [number | null];
  const line = output.trim().split('\n').at(-1) ?? '';
  const made = code === 0 ? exported.safeParse(jsonOf(line)).data : undefined;
  if (made !== undefined) return made;
  const missing = /ModuleNotFoundError: No module named '([^']+)'/.exec(errors)?.[1];
  if (missing !== undefined) throw new InvalidInputError(`${python} has no ${missing}`, { hint });
  throw new InvalidInputError(`${from}: the export failed:\n${errors.trim()}`, { where: from });
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined; // what Python said stands in its errors
  }
}
