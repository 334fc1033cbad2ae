/**
 * What each device of a stated machine holds, whether that fits, and over how many ranks a model has to be divided. A
 * worker's ranks take the cards from 0 on (`torch.cuda.set_device` in engines/torch/petrel_torch/device.py), vLLM
 * takes all of them, and another sampler card 0.
 */
import { divisionOf } from '../../core/division.ts';
import { limitFor } from '../../core/recipe/pass.ts';
import { showBytes } from '../../core/quantities.ts';
import { cardName, ownMemory, partsOfModels } from '../../core/ports/engine-plans.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { batchArithmetic } from '../../core/recipe/index.ts';
import { knownCards, usableBytes } from './cards.ts';
import type { StatedMachine } from './cards.ts';
import { memoryOf } from './processes.ts';
import type { MachineMemory, PlannedModels, ProcessMemory } from './processes.ts';

/** One device, or several that hold the same. */
export interface DeviceUse {
  readonly device: string;
  /** Devices like this one, from `device` on. */
  readonly count: number;
  readonly processes: readonly ProcessMemory[];
  readonly bytes: number;
  /** Bytes that a run may use; null: not stated. */
  readonly room: number | null;
  readonly fits: boolean | null;
}

/** How models have to be divided for these cards. */
export interface Sharding {
  /** The smallest trainer.fsdp_size with which every card has room; null: none, since not all of it is divided. */
  readonly fsdpSize: number | null;
  /** Cards that weights, gradients and moments of the trained models fill, if everything else took nothing. */
  readonly cardsOfState: number;
  /** Bytes of a card that do not get fewer with more ranks: layers that are gathered, activations, the sampler. */
  readonly undividedBytes: number;
  /** Cards that the sampler's weights fill. Absent: none samples on a card. */
  readonly cardsOfSampler?: number;
  /** What would do: other values of keys, or another machine. Absent: it fits, or nothing that is known would. */
  readonly remedy?: Remedy;
}

/** A machine, and keys of the recipe, with which it fits. */
export interface Remedy {
  readonly machine: string;
  readonly overrides: readonly string[];
}

export interface MachineUse {
  readonly machine: StatedMachine;
  readonly devices: readonly DeviceUse[];
  /** Absent: no trainer computes on a card. */
  readonly sharding?: Sharding;
  readonly fits: boolean;
}

/** Undefined for an engine that does not plan, or not this model. */
export async function machineUse(
  recipe: Recipe,
  models: PlannedModels,
  machine: StatedMachine,
): Promise<MachineUse | undefined> {
  const memory = memoryOfMachine(machine);
  const processes = await memoryOf(recipe, models, memory);
  if (processes === undefined) return undefined;
  const devices = grouped(devicesOf(processes, machine));
  const ofTrainer = processes.some(({ role, device }) => role === 'trainer' && device !== ownMemory);
  const sharding = ofTrainer ? await shardingOf(recipe, models, machine, processes) : undefined;
  const fits = devices.every((one) => one.fits !== false);
  return { machine, devices, ...(sharding && { sharding }), fits };
}

/** A stated machine as plans of processes see it. */
export const memoryOfMachine = ({ card, cards, hostBytes }: StatedMachine): MachineMemory => ({
  bytes: hostBytes ?? Number.POSITIVE_INFINITY,
  bf16: true,
  cardBytes: () => card.bytes,
  cards,
});

function devicesOf(processes: readonly ProcessMemory[], { card, cards, hostBytes }: StatedMachine): DeviceUse[] {
  const names = [...new Set(processes.map(({ device }) => device))];
  return names.map((device) => {
    const held = processes.filter((one) => one.device === device);
    const bytes = bytesOf(held);
    const isThere = device === ownMemory || Number(device.slice(cardName(0).length - 1)) < cards;
    const room = device === ownMemory ? (hostBytes ?? null) : isThere ? usableBytes(card) : 0;
    return { device, count: 1, processes: held, bytes, room, fits: room === null ? null : bytes <= room };
  });
}

/** Neighbours that hold the same become one entry; the machine's own memory comes last. */
function grouped(devices: readonly DeviceUse[]): DeviceUse[] {
  const found: DeviceUse[] = [];
  const isHost = ({ device }: DeviceUse) => device === ownMemory;
  for (const one of [...devices.filter((device) => !isHost(device)), ...devices.filter(isHost)]) {
    const last = found.at(-1);
    const isLike =
      last !== undefined &&
      !isHost(one) &&
      last.bytes === one.bytes &&
      last.room === one.room &&
      last.processes.length === one.processes.length;
    if (isLike) found[found.length - 1] = { ...last, count: last.count + 1 };
    else found.push(one);
  }
  return found;
}

async function shardingOf(
  recipe: Recipe,
  models: PlannedModels,
  machine: StatedMachine,
  processes: readonly ProcessMemory[],
): Promise<Sharding> {
  const room = usableBytes(machine.card);
  const need: Need = async (given, change) =>
    needOf((await memoryOf(changed(recipe, change), models, memoryOfMachine(given))) ?? []);
  const state = processes
    .filter(({ role, device }) => role === 'trainer' && device !== ownMemory)
    .reduce((sum, { parts }) => sum + partsOfModels.reduce((all, name) => all + (parts[name] ?? 0), 0), 0);
  const sampler = processes.find(({ role, device }) => role === 'rollout' && device !== ownMemory);
  const divided = recipe.rollout.tensor_model_parallel_size;
  const remedy = await remedyOf(recipe, machine, need);
  return {
    fsdpSize: await fewestRanks(recipe, mostRanks, async (ranks) => (await need(machine, { ranks })).card <= room),
    cardsOfState: Math.ceil(state / room),
    undividedBytes: (await need(machine, { ranks: mostRanks })).card,
    ...(sampler && { cardsOfSampler: Math.ceil((divided * (sampler.parts['weights'] ?? 0)) / room) }),
    ...(remedy && { remedy }),
  };
}

/** Keys that decide how much a card holds. */
interface Change {
  readonly tensorParallel?: number;
  readonly ranks?: number;
  readonly tokens?: number;
  readonly samples?: number;
}

/** Bytes on the fullest card of a machine, and in the machine's own memory. */
type Need = (machine: StatedMachine, change: Change) => Promise<{ readonly card: number; readonly host: number }>;

type Fits = (machine: StatedMachine, change: Change) => Promise<boolean>;

/**
 * The nearest thing that fits. Where the cards have room and the machine's own memory has not: more of that memory.
 * Else what the cards have room for, with as much of it as that needs.
 */
async function remedyOf(recipe: Recipe, machine: StatedMachine, need: Need): Promise<Remedy | undefined> {
  const { tensor_model_parallel_size: divided } = recipe.rollout;
  const fits: Fits = async (given, change) =>
    (change.tensorParallel ?? divided) <= given.cards && (await need(given, change)).card <= usableBytes(given.card);
  const missing = async (given: StatedMachine, change: Change): Promise<number | undefined> => {
    const { host } = await need(given, change);
    return given.hostBytes !== undefined && host > given.hostBytes ? host : undefined;
  };
  const remedy = (given: StatedMachine, change: Change, hostBytes = given.hostBytes): Remedy => ({
    machine: nameOf({ ...given, ...(hostBytes !== undefined && { hostBytes }) }),
    overrides: overridesOf(change),
  });
  if (recipe.trainer.fsdp_size <= machine.cards && (await fits(machine, {}))) {
    const more = await missing(machine, {});
    return more === undefined ? undefined : remedy(machine, {}, more);
  }
  const found = await forCards(recipe, machine, fits);
  return found && remedy(found.machine, found.change, await missing(found.machine, found.change));
}

/**
 * The nearest thing for which cards have room: other ranks, then a sampler that is divided, then shorter packs over all
 * cards, then fewer samples at once as well; then more of the same cards, then the same number of larger ones.
 */
async function forCards(
  recipe: Recipe,
  machine: StatedMachine,
  fits: Fits,
): Promise<{ readonly machine: StatedMachine; readonly change: Change } | undefined> {
  const { cards, card } = machine;
  const step = stepOf(recipe);
  const ranks = step * Math.ceil(Math.max(cards, recipe.trainer.fsdp_size) / step);
  for (const division of divisionsOf(recipe, cards)) {
    const here = await fewestRanks(recipe, cards, (count) => fits(machine, { ranks: count, ...division }));
    if (here !== null) return { machine, change: { ranks: here, ...division } };
  }
  const onAll = step * Math.floor(cards / step);
  const shorter = onAll === 0 ? undefined : await shortened(recipe, machine, onAll, fits);
  if (shorter !== undefined) return { machine, change: shorter };
  for (const division of divisionsOf(recipe, cards)) {
    const more = await fewestRanks(recipe, mostRanks, (count) => fits(machine, { ranks: count, ...division }));
    if (more !== null) return { machine: { ...machine, cards: more }, change: { ranks: more, ...division } };
  }
  for (const larger of knownCards.filter(({ bytes }) => bytes > card.bytes)) {
    const other = { ...machine, card: larger };
    const shorterThere = () => (onAll === 0 ? undefined : shortened(recipe, other, onAll, fits));
    const change = ranks <= cards && (await fits(other, { ranks })) ? { ranks } : await shorterThere();
    if (change !== undefined) return { machine: other, change };
  }
  return undefined;
}

/** The recipe as it is, and with the sampler's model over more cards, or over as many as the machine has. */
function divisionsOf({ rollout }: Recipe, cards: number): Pick<Change, 'tensorParallel'>[] {
  const { name, tensor_model_parallel_size: now } = rollout;
  const sizes = name === 'vllm' ? [1, 2, 4, 8] : [];
  const others = sizes.filter((size) => size <= cards && (size > now || now > cards));
  return [{}, ...others.map((tensorParallel) => ({ tensorParallel }))];
}

/** Tokens of a pack in steps of so many, and samples at once that keep a card busy enough. */
const tokenStep = 256;
const fewSamples = 32;

async function shortened(
  recipe: Recipe,
  machine: StatedMachine,
  ranks: number,
  fits: Fits,
): Promise<Change | undefined> {
  const least = Math.ceil(limitFor(batchArithmetic(recipe).longestSequence, recipe) / tokenStep);
  const limit = Math.floor(recipe.actor.ppo_max_token_len_per_gpu / tokenStep);
  for (const samples of [undefined, ...(recipe.rollout.max_num_seqs > fewSamples ? [fewSamples] : [])]) {
    const change = (steps: number): Change => ({
      ranks,
      tokens: steps * tokenStep,
      ...(samples !== undefined && { samples }),
    });
    const steps = await largest(least, limit, (count) => fits(machine, change(count)));
    if (steps !== null) return change(steps);
  }
  return undefined;
}

/** Its name as `--machine` reads it. */
const nameOf = ({ cards, card, hostBytes }: StatedMachine): string =>
  `${cards}x${card.name}${hostBytes === undefined ? '' : `/${Math.ceil(hostBytes / 2 ** 30)}GiB`}`;

const overridesOf = ({ ranks, tokens, samples, tensorParallel }: Change): string[] => [
  ...(ranks === undefined ? [] : [`trainer.fsdp_size=${ranks}`]),
  ...(tokens === undefined ? [] : [`actor.ppo_max_token_len_per_gpu=${tokens}`]),
  ...(samples === undefined ? [] : [`rollout.max_num_seqs=${samples}`]),
  ...(tensorParallel === undefined ? [] : [`rollout.tensor_model_parallel_size=${tensorParallel}`]),
];

/** More ranks than any group has. */
const mostRanks = 4096;

const changed = (recipe: Recipe, { ranks, tokens, samples, tensorParallel }: Change): Recipe => ({
  ...recipe,
  trainer: { ...recipe.trainer, ...(ranks !== undefined && { fsdp_size: ranks }) },
  actor: { ...recipe.actor, ...(tokens !== undefined && { ppo_max_token_len_per_gpu: tokens }) },
  rollout: {
    ...recipe.rollout,
    ...(samples !== undefined && { max_num_seqs: samples }),
    ...(tensorParallel !== undefined && { tensor_model_parallel_size: tensorParallel }),
  },
});

function needOf(processes: readonly ProcessMemory[]): { readonly card: number; readonly host: number } {
  const byDevice = new Map<string, ProcessMemory[]>();
  for (const one of processes) byDevice.set(one.device, [...(byDevice.get(one.device) ?? []), one]);
  const host = bytesOf(byDevice.get(ownMemory) ?? []);
  byDevice.delete(ownMemory);
  return { card: Math.max(0, ...[...byDevice.values()].map(bytesOf)), host };
}

const bytesOf = (processes: readonly ProcessMemory[]): number =>
  processes.reduce((sum, { workers, bytes }) => sum + workers * bytes, 0);

/** Numbers of ranks that the recipe's division divides are multiples of it. */
function stepOf({ trainer }: Recipe): number {
  const { sequence = 1, tensor = 1, experts = 1 } = divisionOf(trainer) ?? {};
  let step = sequence * tensor;
  while (step % experts !== 0) step += sequence * tensor;
  return step;
}

/** The fewest ranks up to `most` of which `holds` is true, among the numbers that the recipe's division divides. */
async function fewestRanks(
  recipe: Recipe,
  most: number,
  holds: (ranks: number) => Promise<boolean>,
): Promise<number | null> {
  const step = stepOf(recipe);
  if (most < step) return null;
  const found = await smallest(Math.floor(most / step), (count) => holds(count * step));
  return found === null ? null : found * step;
}

/** The smallest number up to `most` of which `holds` is true, if it is true of all larger ones. */
async function smallest(most: number, holds: (n: number) => Promise<boolean>): Promise<number | null> {
  if (!(await holds(most))) return null;
  let [below, found] = [0, most];
  while (found - below > 1) {
    const middle = Math.floor((below + found) / 2);
    if (await holds(middle)) found = middle;
    else below = middle;
  }
  return found;
}

/** The largest number from `least` to `most` of which `holds` is true, if it is true of all smaller ones. */
async function largest(least: number, most: number, holds: (n: number) => Promise<boolean>): Promise<number | null> {
  if (most < least) return null;
  const found = await smallest(most - least + 1, async (n) => holds(most + 1 - n));
  return found === null ? null : most + 1 - found;
}

/** Why the machine cannot run it, and what would: one sentence each. Undefined where it fits. */
export function tooLittle(
  use: MachineUse,
  recipe: Recipe,
): { readonly detail: string; readonly hint: string } | undefined {
  const { machine, devices, sharding } = use;
  const full = devices.find(({ fits }) => fits === false);
  if (full === undefined) return undefined;
  const { card, cards } = machine;
  if (full.device === ownMemory)
    return {
      detail: `the machine’s own memory would hold ${showBytes(full.bytes)}, it has ${showBytes(full.room ?? 0)}${reasonOf(full)}`,
      hint: sharding?.remedy
        ? remedyText(sharding, machine, recipe)
        : `a machine with ${showBytes(full.bytes)}, or a smaller model`,
    };
  const ranks = recipe.trainer.fsdp_size;
  const { tensor_model_parallel_size: divided } = recipe.rollout;
  const lacking =
    ranks > cards
      ? (['trainer.fsdp_size', ranks] as const)
      : (['rollout.tensor_model_parallel_size', divided] as const);
  const detail =
    lacking[1] > cards
      ? `${lacking[0]}=${lacking[1]} needs ${lacking[1]} cards, the machine has ${cards}`
      : `${full.device} would hold ${showBytes(full.bytes)}; of ${showBytes(card.bytes)} a run may use ${showBytes(usableBytes(card))}`;
  return { detail, hint: remedyText(sharding, machine, recipe) };
}

/** What takes the most of the machine's own memory beside cards. */
function reasonOf({ processes }: DeviceUse): string {
  const trainer = processes.find(({ role }) => role === 'trainer')?.parts ?? {};
  return (trainer['snapshot'] ?? 0) > 0 ? ': a checkpoint is written from a copy of weights and moments' : '';
}

function remedyText(sharding: Sharding | undefined, machine: StatedMachine, recipe: Recipe): string {
  const larger = 'cards with more memory, or a smaller model';
  if (sharding === undefined) return larger;
  const { cardsOfState, undividedBytes, cardsOfSampler = 0, remedy } = sharding;
  const divided = recipe.rollout.tensor_model_parallel_size;
  if (remedy !== undefined) {
    const here = remedy.machine === nameOf(machine);
    return `it fits with ${[...(here ? [] : [`--machine ${remedy.machine}`]), ...remedy.overrides].join(' ')}`;
  }
  const state = `weights, gradients and moments fill ${cardsOfState} such cards`;
  const sampler =
    cardsOfSampler > divided ? `, the sampler's weights ${cardsOfSampler}, of which it gets ${divided}` : '';
  return `${state}${sampler}; ${showBytes(undividedBytes)} of a card are not divided, whatever their number: ${larger}`;
}
