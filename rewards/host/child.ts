/**
 * A scorer process for built-in scorers and TypeScript or JavaScript modules. It reads samples as lines, scores one
 * after the other, and ends with its input. scorer-process.ts starts it; it is never imported.
 */
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { errorText } from './error-text.ts';
import { functionScorer, scorerByName, scorerNameFor } from '../registry.ts';
import { toScored, toScoredList } from '../result.ts';
import type { ListScorer, Scorer, ScorerSettings } from '../types.ts';
import { MARK_VARIABLE, type Reply, type Request, type ScoreCall } from './protocol.ts';

type Load = Extract<Request, { type: 'load' }>;
type BuiltinLoad = Extract<Load, { builtin: string | null }>;

const mark = process.env[MARK_VARIABLE] ?? '';
// Bound now, so that later changes of process.stdout by a user's module have no effect.
const write = process.stdout.write.bind(process.stdout);

/** The leading line break ends any line that the scorer printed without one. */
function reply(message: Reply): void {
  write(`\n${mark}${JSON.stringify(message)}\n`);
}

async function main(): Promise<void> {
  let scorer: Scorer | undefined;
  let settings: ScorerSettings = {};
  let module: string | undefined;
  for await (const line of createInterface({ input: process.stdin })) {
    const request = JSON.parse(line) as Request;
    if (request.type !== 'load') await score(request, { scorer, settings, module });
    else {
      module = 'module' in request ? request.module : undefined;
      settings = request.settings;
      scorer = await load(request);
    }
  }
  process.exit(0);
}

async function load(request: Load): Promise<Scorer | undefined> {
  try {
    const scorer = 'module' in request ? await importScorer(request.module, request.name) : builtin(request);
    reply({ type: 'ready' });
    return scorer;
  } catch (error) {
    reply({ type: 'unloadable', reason: errorText(error, 'module' in request ? request.module : undefined) });
    return undefined;
  }
}

/** Loads a built-in scorer; without a name, each row's data source decides. */
function builtin({ builtin: name, settings, limits }: BuiltinLoad): Scorer {
  if (name === null) return (input) => scorerByName(scorerNameFor(input.dataSource))(input, settings, limits);
  const { score, prepare } = functionScorer(name);
  prepare?.(settings, limits);
  return (input) => score(input, settings, limits);
}

/** The named function. `compute_score` is also looked up as `computeScore` and as the default export. */
async function importScorer(path: string, name: string): Promise<Scorer> {
  const exports = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
  const names =
    name === 'compute_score' || name === 'computeScore' ? ['computeScore', 'compute_score', 'default'] : [name];
  const found = names.map((candidate) => exports[candidate]).find((value) => typeof value === 'function');
  if (found === undefined) {
    throw new Error(
      `${path} exports no function ${names.slice(0, 2).join(' or ')}; it exports: ${Object.keys(exports).join(', ') || 'nothing'}`,
    );
  }
  return found as Scorer;
}

interface Loaded {
  readonly scorer: Scorer | undefined;
  readonly settings: ScorerSettings;
  readonly module: string | undefined;
}

async function score(call: ScoreCall & { readonly id: number }, { scorer, settings, module }: Loaded): Promise<void> {
  const { id } = call;
  let returned: unknown;
  try {
    if (scorer === undefined) throw new Error('no scorer is loaded');
    returned = await (call.type === 'score'
      ? scorer(call.input, settings)
      : (scorer as unknown as ListScorer)(call.inputs, settings));
  } catch (error) {
    return reply({ type: 'failed', id, code: 'threw', reason: errorText(error, module) });
  }
  try {
    if (call.type === 'score') reply({ type: 'result', id, ...toScored(returned) });
    else reply({ type: 'results', id, results: toScoredList(returned, call.inputs.length) });
  } catch (error) {
    reply({ type: 'failed', id, code: 'bad-result', reason: error instanceof Error ? error.message : String(error) });
  }
}

await main();
