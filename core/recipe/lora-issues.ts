/** Checks of low-rank adapters: which engines have them. */
import { enginesThat } from '../engines.ts';
import { samplesResponses } from '../run-kinds.ts';
import type { RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';

/** Does the run train an adapter, and its base stays as it is? */
export const trainsAdapter = ({ model }: Pick<Recipe, 'model'>): boolean =>
  model.lora_rank > 0 || model.lora_adapter_path !== null;

const trainers = enginesThat(({ trains, adapters }) => trains && adapters);
const samplers = enginesThat(({ samples, adapters }) => samples && adapters);

export function loraIssues(recipe: Recipe): RecipeIssue[] {
  if (!trainsAdapter(recipe)) return [];
  const { trainer, rollout, kind } = recipe;
  return [
    ...engineIssue('trainer.engine', trainer.engine, trainers),
    ...(samplesResponses(kind) ? [...engineIssue('rollout.name', rollout.name, samplers), ...rankIssue(recipe)] : []),
  ];
}

/** The largest rank for which vLLM makes room. */
const mostOfVllm = 512;

function rankIssue({ model, rollout }: Recipe): RecipeIssue[] {
  if (rollout.name !== 'vllm' || model.lora_rank <= mostOfVllm) return [];
  return [
    {
      path: 'model.lora_rank',
      message: 'vLLM has no room for adapters of this rank',
      expected: `at most ${mostOfVllm}`,
      received: String(model.lora_rank),
      hint: `set model.lora_rank=${mostOfVllm}, or rollout.name=hf`,
    },
  ];
}

function engineIssue(path: string, name: string, able: readonly string[]): RecipeIssue[] {
  if (able.includes(name)) return [];
  return [
    {
      path,
      message: `the engine ${name} has no low-rank adapters`,
      expected: able.join(' or '),
      received: name,
      hint: `set ${path}=${able[0]}, or model.lora_rank=0 to train all weights`,
    },
  ];
}
