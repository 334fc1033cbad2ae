/** Checks of how the processes of the torch engine share and hold a model: sizes that do not divide each other. */
import { divisionOf } from '../division.ts';
import { nearestDivisors } from './arithmetic.ts';
import type { RecipeIssue } from './issues.ts';
import { trainsAdapter } from './lora-issues.ts';
import type { Recipe } from './schema.ts';

export function divisionIssues(recipe: Recipe): RecipeIssue[] {
  const { trainer } = recipe;
  const { fsdp_size: ranks, ulysses_sequence_parallel_size: sequence, tensor_model_parallel_size: tensor } = trainer;
  const { expert_model_parallel_size: experts } = trainer;
  // Other checks refuse these keys with the native engine.
  if (trainer.engine === 'native' || divisionOf(trainer) === undefined) return [];
  const needed = leastCommonMultiple(sequence * tensor, experts);
  // One process alone: the number of processes was forgotten.
  if (ranks === 1 && needed > 1)
    return [
      {
        path: 'trainer.fsdp_size',
        message: 'the processes that share a model are among these',
        expected: `a multiple of ${needed}`,
        received: '1',
        hint: `use trainer.fsdp_size=${needed}`,
      },
    ];
  return [
    ...stateIssues(recipe),
    ...dividing('tensor_model_parallel_size', tensor, ranks),
    ...(ranks % tensor === 0 ? dividing('ulysses_sequence_parallel_size', sequence, ranks, tensor) : []),
    ...expertIssues(experts, ranks, tensor),
    ...(trainsAdapter(recipe) && (tensor > 1 || experts > 1)
      ? [
          {
            path: `trainer.${tensor > 1 ? 'tensor' : 'expert'}_model_parallel_size`,
            message: 'the layers of a model with an adapter cannot be divided',
            expected: '1',
            received: `${tensor > 1 ? tensor : experts}`,
            hint: 'trainer.fsdp_size divides its weights, trainer.ulysses_sequence_parallel_size its tokens',
          },
        ]
      : []),
  ];
}

function stateIssues({ trainer, model }: Recipe): RecipeIssue[] {
  if (trainer.state_dtype === 'fp32' || model.compute_dtype === 'bf16') return [];
  return [
    {
      path: 'trainer.state_dtype',
      message: 'products would be computed in a wider type than their weights have',
      expected: 'fp32, or bf16 beside model.compute_dtype=bf16',
      received: 'bf16',
      hint: 'set model.compute_dtype=bf16 too',
    },
  ];
}

/** Processes that share matrices are among those that share experts. */
function expertIssues(experts: number, ranks: number, tensor: number): RecipeIssue[] {
  if (experts === 1 || (ranks % experts === 0 && experts % tensor === 0)) return [];
  const able = divisorsOf(ranks).filter((one) => one > 1 && one % tensor === 0);
  const matrices = tensor === 1 ? '' : `, or is no multiple of trainer.tensor_model_parallel_size (${tensor})`;
  return [
    {
      path: 'trainer.expert_model_parallel_size',
      message: `it does not divide the ${ranks} processes of trainer.fsdp_size${matrices}`,
      expected: able.length === 0 ? '1' : able.join(' or '),
      received: `${experts}`,
      hint: `use trainer.expert_model_parallel_size=${able[0] ?? 1}`,
    },
  ];
}

const divisorsOf = (total: number): number[] =>
  Array.from({ length: total }, (_, i) => i + 1).filter((one) => total % one === 0);

function leastCommonMultiple(a: number, b: number): number {
  let sum = a;
  while (sum % b !== 0) sum += a;
  return sum;
}

/** `within`: what divides the processes already. */
function dividing(name: string, size: number, ranks: number, within = 1): RecipeIssue[] {
  if (ranks % (size * within) === 0) return [];
  const { below, above } = nearestDivisors(ranks / within, size);
  const groups = within === 1 ? '' : `, ${within} of which share matrices`;
  return [
    {
      path: `trainer.${name}`,
      message: `it does not divide the ${ranks} processes of trainer.fsdp_size${groups}`,
      expected: `a divisor of ${ranks / within}`,
      received: `${size}`,
      hint: `use trainer.${name}=${below}${above === undefined ? '' : ` or ${above}`}`,
    },
  ];
}
