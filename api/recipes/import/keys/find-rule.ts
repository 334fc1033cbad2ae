/** Finds the row of the tables for a path. */
import type { EngineChoice } from './engine-choice.ts';
import { fillIn, patternOf } from './pattern.ts';
import { RULES, type Rule } from './rules.ts';
import { GPU_RULES, TORCH_RULES, VLLM_GPU_RULES, VLLM_RULES } from './torch-rules.ts';

interface Compiled {
  readonly pattern: RegExp;
  readonly rule: Rule;
}

const compile = (rules: readonly Rule[]): readonly Compiled[] =>
  rules.map((rule) => ({ pattern: patternOf(rule.verl), rule }));
const [ofGpus, ofVllmGpus, ofTorch, ofVllm, ofAll] = [GPU_RULES, VLLM_GPU_RULES, TORCH_RULES, VLLM_RULES, RULES].map(
  compile,
);

/** The first rule that matches, with `$1` and `**` in `to` replaced by what they matched. */
export function findRule(path: string, { trainer, sampler, divides }: EngineChoice): Rule | undefined {
  const isVllm = sampler === 'vllm';
  const tables = [
    divides && ofGpus,
    trainer === 'torch' && ofTorch,
    isVllm && divides && ofVllmGpus,
    isVllm && ofVllm,
    ofAll,
  ];
  for (const { pattern, rule } of tables.flatMap((table) => table || [])) {
    const match = pattern.exec(path);
    if (match === null) continue;
    return rule.to === undefined ? rule : { ...rule, to: fillIn(rule.to, match) };
  }
  return undefined;
}
