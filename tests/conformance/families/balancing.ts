import { balancedPartitions } from '../../../core/rl/balance/karmarkar-karp.ts';
import {
  divideUp,
  greedyPartitions,
  groupBalancedPartitions,
  inverseOrder,
  roundUpTo,
  workload,
} from '../balance/partitions.ts';
import { balanceRanks, unbalanceMetrics } from '../balance/ranks.ts';
import { verlMicroBatches } from '../balance/verl-micro-batches.ts';
import { pureEvaluator } from '../evaluators.ts';
import { inputsOf, numbers, paramsOf } from '../padded.ts';
import type { GoldenCase, Outcome } from '../types.ts';

export const balancing = pureEvaluator('balancing', {
  karmarkar_karp: karmarkarKarp,
  group_and_greedy: byFunction,
  micro_batches: microBatches,
  seqlen_unbalance: byFunction,
});

const FUNCTIONS: Readonly<Record<string, (testCase: GoldenCase) => Outcome>> = {
  get_group_balanced_partitions: (testCase) => ({
    partitions: groupBalancedPartitions(
      lengths(testCase, 'seqlen_list'),
      inputsOf(testCase).get('uid_list') as string[],
      parts(testCase),
    ),
  }),
  greedy_partition: (testCase) => ({
    partitions: greedyPartitions(
      lengths(testCase, 'seqlen_list'),
      parts(testCase),
      paramsOf(testCase).flag('equal_size'),
    ),
  }),
  calculate_workload: (testCase) => ({ workload: lengths(testCase, 'seqlen_list').map(workload) }),
  'ceildiv,roundup_divisible': (testCase) => {
    const [a, b] = [paramsOf(testCase).number('a'), paramsOf(testCase).number('b')];
    return { ceildiv: divideUp(a, b), roundup_divisible: roundUpTo(a, b) };
  },
  get_reverse_idx: (testCase) => ({ reverse: inverseOrder(lengths(testCase, 'index')) }),
  log_seqlen_unbalance: (testCase) =>
    unbalanceMetrics(
      lengths(testCase, 'seqlen_list'),
      inputsOf(testCase).get('partitions') as number[][],
      paramsOf(testCase).string('prefix'),
    ),
  _balance_batch: (testCase) => {
    const params = paramsOf(testCase);
    const { order, metrics } = balanceRanks(lengths(testCase, 'seq_lengths'), params.number('dp_size'), {
      miniBatchRows: params.optionalNumber('keep_minibatch_of'),
      groups_S: params.flag('prefix_grouper') ? (inputsOf(testCase).get('uid') as string[]) : undefined,
    });
    return { new_order: order, metrics };
  },
};

function byFunction(testCase: GoldenCase): Outcome {
  const name = paramsOf(testCase).string('function');
  const compute = FUNCTIONS[name];
  if (compute === undefined) throw new Error(`unknown function ${name}`);
  return compute(testCase);
}

function karmarkarKarp(testCase: GoldenCase): Outcome {
  const sizes = lengths(testCase, 'seqlen_list');
  const partitions = balancedPartitions(sizes, parts(testCase), paramsOf(testCase).flag('equal_size'));
  return { partitions, sums: partitions.map((part) => sumOf(part, sizes)) };
}

function microBatches(testCase: GoldenCase): Outcome {
  const [params, sizes] = [paramsOf(testCase), lengths(testCase, 'seq_lengths')];
  const micro_batches = verlMicroBatches(sizes, {
    maxTokenLen: params.number('max_token_len'),
    paddedWidth: inputsOf(testCase).number('padded_width'),
    minMicroBatches: params.optionalNumber('min_num_micro_batch'),
    dividedBy: params.optionalNumber('num_batches_divided_by'),
    groupSize: params.optionalNumber('force_group_size'),
    balanceOrder: params.has('use_dynamic_bsz_balance') ? params.flag('use_dynamic_bsz_balance') : undefined,
  });
  return {
    micro_batches,
    tokens: micro_batches.map((part) => sumOf(part, sizes)),
    num_micro_batches: micro_batches.length,
  };
}

function lengths(testCase: GoldenCase, name: string): number[] {
  return numbers(inputsOf(testCase).get(name));
}

function parts(testCase: GoldenCase): number {
  return paramsOf(testCase).number('k_partitions');
}

function sumOf(part: readonly number[], sizes: readonly number[]): number {
  return part.reduce((sum, i) => sum + sizes[i]!, 0);
}
