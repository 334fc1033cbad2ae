import type { Evaluator, GoldenCase, Outcome } from './types.ts';

export type CaseFunction = (testCase: GoldenCase) => Outcome | Promise<Outcome>;

/** An evaluator of pure functions: one per file name of the family. */
export function pureEvaluator(family: string, byName: Readonly<Record<string, CaseFunction>>): Evaluator {
  return {
    family,
    handles: (file) => Object.hasOwn(byName, file.name),
    evaluate: async (testCase, file) => {
      const compute = byName[file.name];
      if (compute === undefined) throw new Error(`no evaluator for ${family}/${file.name}`);
      return { got: await compute(testCase) };
    },
  };
}
