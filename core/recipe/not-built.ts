/** Values that the schema accepts but no run can use yet. A built feature removes its entry. */
import { samplesResponses } from '../run-kinds.ts';
import { ADVANTAGE_NAMES, needsOfEstimator, needsOfLoss, POLICY_LOSS_NAMES } from '../rl/names.ts';
import type { AdvantageName, AdvantageNeed, LossNeed, PolicyLossName } from '../rl/names.ts';
import type { ModulePath } from '../module-path.ts';
import type { RecipeIssue } from './issues.ts';
import type { Recipe } from './schema.ts';

const sizesOfTorch = [
  'fsdp_size',
  'ulysses_sequence_parallel_size',
  'tensor_model_parallel_size',
  'expert_model_parallel_size',
] as const;

interface NotBuilt {
  readonly path: string;
  /** Does the recipe ask for it? */
  readonly asked: (recipe: Recipe) => boolean;
  /** The values that work today. */
  readonly today: string;
  /** The reason, if parts of the feature exist. */
  readonly because?: string;
}

/** `trainer.logger` as a list. */
export const loggersOf = ({ trainer }: Recipe): readonly string[] => [trainer.logger].flat();

/** What runs can give an advantage estimator. */
const given: ReadonlySet<AdvantageNeed> = new Set([
  'groupsOfTwo',
  'values',
  'greedyBaselines',
  'components',
  'oldLogProbs',
  'sumPiSquared',
  'processRewards',
  'promptValues',
]);
const isFed = (name: AdvantageName | ModulePath): boolean => needsOfEstimator(name).every((need) => given.has(need));

/** What runs can give a policy loss. */
const givenLosses: ReadonlySet<LossNeed> = new Set([
  'seed',
  'groups',
  'scores',
  'refLogProbs',
  'rolloutLogProbs',
  'logZ',
]);
const isFedLoss = (name: PolicyLossName | ModulePath): boolean =>
  needsOfLoss(name).every((need) => givenLosses.has(need));

const NOT_BUILT: readonly NotBuilt[] = [
  {
    path: 'actor.policy_loss.loss_mode',
    asked: (r) => !isFedLoss(r.actor.policy_loss.loss_mode),
    today: POLICY_LOSS_NAMES.filter(isFedLoss).join(', '),
  },
  {
    path: 'trainer.standby',
    asked: (r) => r.trainer.standby > 0 && r.critic.own_trainer,
    today: '0 with critic.own_trainer',
  },
  {
    path: 'trainer.share',
    asked: (r) => r.trainer.share === 'turns' && (r.trainer.standby > 0 || r.critic.own_trainer),
    today: 'queue with trainer.standby or critic.own_trainer',
    because: 'a run with two trainers could get one and wait for the other',
  },
  {
    path: 'rollout.name',
    asked: (r) => r.rollout.name === 'onnx',
    today: 'native, hf, vllm; sglang with rollout.url',
  },
  {
    path: 'rollout.tensor_model_parallel_size',
    asked: ({ rollout }) => rollout.tensor_model_parallel_size > 1 && (rollout.name !== 'vllm' || rollout.url !== null),
    today: '1, or more with rollout.name: vllm and without rollout.url',
    because: 'it divides the model of the vLLM on a rollout worker, and no other',
  },
  { path: 'rollout.mode', asked: (r) => r.rollout.mode !== 'sync', today: 'sync' },
  { path: 'rollout.multi_turn.enable', asked: (r) => r.rollout.multi_turn.enable, today: 'false' },
  {
    path: 'critic.enable',
    asked: (r) => r.critic.enable === true && !samplesResponses(r.kind),
    today: 'null or false',
    because: 'a run on given responses has no returns to learn',
  },
  {
    path: 'algorithm.adv_estimator',
    asked: (r) => !isFed(r.algorithm.adv_estimator),
    today: ADVANTAGE_NAMES.filter(isFed).join(', '),
    because: 'it learns from the steps of agents, and no run has agents yet',
  },
  ...sizesOfTorch.map((name) => ({
    path: `trainer.${name}`,
    asked: (r: Recipe) => r.trainer[name] > 1 && r.trainer.engine === 'native',
    today: '1 with trainer.engine: native',
    because: 'the native engine is one process',
  })),
  {
    path: 'trainer.cpu_offload',
    asked: (r) => r.trainer.cpu_offload && r.trainer.engine === 'native',
    today: 'false with trainer.engine: native',
    because: 'the native engine computes in the machine’s own memory',
  },
  {
    path: 'trainer.state_dtype',
    asked: (r) => r.trainer.state_dtype !== 'fp32' && r.trainer.engine === 'native',
    today: 'fp32 with trainer.engine: native',
    because: 'the native engine keeps its state in fp32',
  },
  { path: 'trainer.virtual_shards', asked: (r) => r.trainer.virtual_shards !== 1, today: '1' },
  {
    path: 'trainer.log_val_generations',
    asked: (r) => r.trainer.log_val_generations > 0,
    today: '0 (petrel samples --validation shows them)',
  },
  {
    path: 'model.dtype',
    asked: (r) => r.model.dtype !== 'auto',
    today: 'auto (--dtype of petrel ckpt export chooses)',
  },
  {
    path: 'trainer.logger',
    asked: (r) => loggersOf(r).some((name) => !['console', 'file'].includes(name)),
    today: 'console, file',
  },
];

/** The values that work today, by the path of a key that is not completely built. */
export const BUILT_TODAY: Readonly<Record<string, string>> = Object.fromEntries(
  NOT_BUILT.map(({ path, today }) => [path, today]),
);

/** An issue for every key whose value is not built yet. */
export function notBuiltYet(recipe: Recipe): RecipeIssue[] {
  return NOT_BUILT.filter((entry) => entry.asked(recipe)).map((entry) => ({
    path: entry.path,
    message: entry.because ?? 'not built yet',
    expected: entry.today,
    hint: `what works today: ${entry.path}: ${entry.today}`,
  }));
}
