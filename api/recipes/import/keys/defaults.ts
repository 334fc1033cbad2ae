/** Keys for which verl and petrel have different defaults. Only data, and what an import says about them. */
import { recipeKey } from '../../../../core/recipe/keys.ts';
import { defaultGpus } from './conversions.ts';
import type { DefaultKey } from './outcome.ts';

interface Default {
  readonly petrel: string;
  /** verl's key without the wrapper, if it has another name. */
  readonly verl?: string;
  readonly verlDefault: unknown;
  readonly isWritten: boolean;
  readonly note: string;
}

const decides = 'written, because it decides what is learned';

const RL: readonly Default[] = [
  { petrel: 'algorithm.adv_estimator', verlDefault: 'gae', isWritten: true, note: decides },
  {
    petrel: 'model.path',
    verlDefault: '~/models/deepseek-llm-7b-chat',
    isWritten: true,
    note: 'written, because petrel requires it',
  },
  {
    petrel: 'data.train_files',
    verlDefault: '~/data/rlhf/gsm8k/train.parquet',
    isWritten: true,
    note: 'written, because petrel requires it',
  },
  {
    petrel: 'data.val_files',
    verlDefault: '~/data/rlhf/gsm8k/test.parquet',
    isWritten: false,
    note: 'without it petrel does not validate',
  },
  {
    petrel: 'trainer.save_freq',
    verlDefault: -1,
    isWritten: false,
    note: 'a run that may be interrupted needs checkpoints',
  },
  { petrel: 'trainer.logger', verlDefault: ['console', 'wandb'], isWritten: false, note: 'metrics are in the store' },
  {
    petrel: 'reward.num_workers',
    verlDefault: 8,
    isWritten: false,
    note: 'processes that score; it does not change a result',
  },
];

/** The default of a script whose model is divided over its GPUs. */
const GPUS: readonly Default[] = [
  {
    petrel: 'trainer.fsdp_size',
    verl: 'trainer.n_gpus_per_node',
    verlDefault: defaultGpus,
    isWritten: false,
    note: 'processes of torch, one for each GPU; in verl trainer.n_gpus_per_node',
  },
  {
    petrel: 'rollout.tensor_model_parallel_size',
    verlDefault: 2,
    isWritten: false,
    note: 'GPUs that share one model of vLLM: more than 1 where it does not fit one of them',
  },
];

const SFT: readonly Default[] = [
  {
    petrel: 'trainer.save_freq',
    verlDefault: -1,
    isWritten: false,
    note: 'a run that may be interrupted needs checkpoints',
  },
];

/** The defaults that the input does not set. `divides`: the recipe is for several GPUs. */
export function defaultsThatDiffer(
  kind: 'rl' | 'sft',
  divides: boolean,
  isGiven: (path: string) => boolean,
): DefaultKey[] {
  return [...(kind === 'sft' ? SFT : RL), ...(divides ? GPUS : [])]
    .filter(({ petrel, verl }) => !isGiven(petrel) && (verl === undefined || !isGiven(verl)))
    .map(({ petrel, verlDefault, isWritten, note }) => ({
      petrel,
      verlDefault,
      petrelDefault: recipeKey(petrel)?.default ?? null,
      isWritten,
      note,
    }));
}

/** Is the key one of those for which verl's default is another one? */
export const hasOtherDefault = (petrel: string): boolean => [...RL, ...GPUS].some((one) => one.petrel === petrel);
