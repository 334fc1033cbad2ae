import type { Evaluator } from './types.ts';

/** One line per evaluator: the family it serves and the module that exports it. */
const MODULES: readonly (readonly [family: string, module: string])[] = [
  ['models', './families/models.ts'],
  ['optim', './families/optim-engine.ts'],
  ['optim', './families/lr-schedules.ts'],
  ['sampling', './families/sampling.ts'],
  ['tokenizers', './families/tokenizers.ts'],
  ['templates', './families/templates.ts'],
  ['losses', './families/losses.ts'],
  ['losses', './families/actor-total.ts'],
  ['policy_loss', './families/policy-loss.ts'],
  ['advantages', './families/advantages.ts'],
  ['balancing', './families/balancing.ts'],
  ['metrics', './families/metrics.ts'],
  ['rewards', './families/rewards.ts'],
];

/** Evaluators of these families (all when absent). A module that isn't there leaves its files `not implemented`. */
export async function loadEvaluators(families?: readonly string[]): Promise<Evaluator[]> {
  const wanted = MODULES.filter(([family]) => families === undefined || families.includes(family));
  const found = await Promise.all(wanted.map(([, module]) => importEvaluators(module)));
  return found.flat();
}

async function importEvaluators(module: string): Promise<Evaluator[]> {
  try {
    const exports: unknown = await import(/* @vite-ignore */ module);
    return Object.values(exports as Record<string, unknown>).filter(isEvaluator);
  } catch (error) {
    if (isMissing(error, module)) return [];
    throw error;
  }
}

function isEvaluator(value: unknown): value is Evaluator {
  return typeof value === 'object' && value !== null && 'family' in value && 'handles' in value && 'evaluate' in value;
}

function isMissing(error: unknown, module: string): boolean {
  const name = module.replace('./', '').replace(/\.ts$/, '');
  return error instanceof Error && /Cannot find module|Failed to load|does the file exist/i.test(error.message) && error.message.includes(name);
}
