/** Chooses from an import's report what changes what is learned and is not in the recipe. */
import { recipeKey } from '../../../../core/recipe/keys.ts';
import { showValue } from '../../../../core/recipe/show-value.ts';
import type { Note } from './entries.ts';
import type { ImportedKey, ImportLoss } from './outcome.ts';
import { REASONS, type Reason } from './reasons.ts';

/** Reasons of keys that decide what is learned. The others choose devices, kernels, servers and machinery. */
const LEARNED: ReadonlySet<Reason> = new Set<Reason>([
  'algorithm',
  'turns',
  'trackers',
  'sampler',
  'rewardManager',
  'optimizer',
  'architecture',
  'data',
  'critic',
]);

/** Keys of `trainer` that decide how long a run learns. */
const LENGTHS: ReadonlySet<string> = new Set([
  'trainer.total_epochs',
  'trainer.total_training_steps',
  'trainer.critic_warmup',
]);
const severalTurns = 'rollout.multi_turn.enable';

/** The losses: settings that no run of the recipe has, in the order of the input. */
export function lossesOf(keys: readonly ImportedKey[], notes: readonly Note[]): ImportLoss[] {
  return [
    ...notes.flatMap(({ decides, text, ...place }) => (decides === true ? [{ why: text, ...place }] : [])),
    ...keys.flatMap((key) => {
      const why = reasonOfLoss(key);
      return why === undefined ? [] : [lossOf(key, why)];
    }),
    ...contradictions(keys),
  ];
}

const lossOf = ({ verl, file, line, ...key }: ImportedKey, why: string): ImportLoss => ({
  verl,
  ...(file !== undefined && { file }),
  ...('value' in key && { value: key.value }),
  ...(line !== undefined && { line }),
  why,
});

function reasonOfLoss(key: ImportedKey): string | undefined {
  const { outcome, petrel, reason, note, value } = key;
  switch (outcome) {
    case 'none':
      if (petrel !== undefined) return decides(petrel) ? note : undefined;
      return reason !== undefined && LEARNED.has(reason) && asks(key) ? REASONS[reason] : undefined;
    case 'unknown':
      return /^trainer\./.test(key.verl) || ofDevices(key.verl)
        ? undefined
        : `petrel does not know this key${note === undefined ? '' : `; ${note}`}`;
    case 'unreadable':
      return petrel !== undefined && decides(petrel) ? `its value is not known: ${note ?? ''}` : undefined;
    case 'refused':
      return petrel !== undefined && decides(petrel) && value !== ''
        ? `petrel does not take the value: ${note ?? ''}`
        : undefined;
    default:
      return petrel === severalTurns && key.written === true
        ? 'several turns are not built yet: petrel plan refuses the recipe; without rollout.multi_turn.enable it would train on one turn'
        : undefined;
  }
}

/** Does an unknown key, by its name, choose devices or how a model is divided over them? */
const ofDevices = (verl: string): boolean =>
  verl
    .slice(verl.lastIndexOf('.') + 1)
    .split('_')
    .some((part, index, parts) => DEVICE_WORDS.has(part) || (part === 'world' && parts[index + 1] === 'size'));

const DEVICE_WORDS: ReadonlySet<string> = new Set(
  'parallel parallelism gpu gpus ngpus npu npus cuda nccl hccl device devices offload'.split(' '),
);

/** A key without which a run learns something else, and which `petrel plan` does not ask for anyway. */
function decides(petrel: string): boolean {
  const key = recipeKey(petrel);
  if (LENGTHS.has(petrel)) return true;
  if (key === undefined || key.change === 'free' || key.required) return false;
  return !/^(?:name|store|trainer\.|data\.val_|rollout\.(?:val_|name))/.test(petrel);
}

/** null, false and empty values ask for nothing; where an optimiser keeps its moments does not change what it does. */
const asks = ({ verl, value }: ImportedKey): boolean =>
  value !== null &&
  value !== false &&
  value !== '' &&
  !(typeof value === 'object' && Object.keys(value as object).length === 0) &&
  !/offload|precision_aware|overlap|_target_/.test(verl);

/** Names of two dates may set the same key to two values; the last one is in the recipe. */
function contradictions(keys: readonly ImportedKey[]): ImportLoss[] {
  const last = new Map<string, ImportedKey>();
  const losses: ImportLoss[] = [];
  for (const key of keys) {
    if (key.petrel === undefined || !('written' in key)) continue;
    const before = last.get(key.petrel);
    if (
      before !== undefined &&
      before.written !== null &&
      showValue(before.written) !== showValue(key.written) &&
      isRename(before, key)
    )
      losses.push(
        lossOf(before, `${key.verl} sets ${key.petrel} to ${showValue(key.written)}, which is in the recipe`),
      );
    last.set(key.petrel, key);
  }
  return losses;
}

/** Several keys of verl may meet in one of petrel's by a conversion; only plain names contradict each other. */
const isRename = (...keys: readonly ImportedKey[]): boolean =>
  keys.every(({ outcome }) => outcome === 'same' || outcome === 'moved');

/** The line above a list of losses. */
export function importLossTitle(losses: readonly ImportLoss[], source: string): string {
  const what = losses.length === 1 ? 'a setting that changes' : `${losses.length} settings that change`;
  return `NOT AS IN ${source}: ${what} what is learned ${losses.length === 1 ? 'is' : 'are'} not in the recipe, or cannot be run`;
}

/** A loss on one line, with its place in the input. */
export function importLossText({ verl, why, ...loss }: ImportLoss): string {
  const key = verl === undefined ? '' : `${verl}${'value' in loss ? `: ${showValue(loss.value)}` : ''}; `;
  return `${importPlaceText(loss)}${key}${why}`;
}

/** A report names a place so: `line 3: ` in the imported file, `config/own.yaml, line 3: ` in another one. */
export function importPlaceText({ file, line }: { readonly file?: string; readonly line?: number }): string {
  const words = [file, line === undefined ? undefined : `line ${line}`].filter((word) => word !== undefined);
  return words.length === 0 ? '' : `${words.join(', ')}: `;
}
