/**
 * Memory of the worker processes of a run: what its engines say of each, and 200 MiB for Node, the engine and its
 * libraries and the rows, and 60 MiB for each scorer process. A trainer may have to hold the critic also with
 * critic.own_trainer.
 */
import { divisionOf } from '../../core/division.ts';
import { tokensOfPass } from '../../core/recipe/pass.ts';
import type { ComputeType } from '../../core/parameters.ts';
import { ownMemory, partsOfModels } from '../../core/ports/engine-plans.ts';
import type { AdapterWanted, DevicePlan, ProcessWanted } from '../../core/ports/engine-plans.ts';
import type { ModelRef } from '../../core/ports/engines.ts';
import {
  batchArithmetic,
  readsReference,
  samplerEngine,
  trainedComponents,
  trainsAdapter,
} from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import { httpName } from '../../core/sampling-server.ts';
import { plansOf } from '../engine-plans.ts';

const mib = 2 ** 20;

/** Memory of the processes of one kind in one pool on one device. */
export interface ProcessMemory {
  readonly pool: string;
  readonly workers: number;
  /**
   * The run has one trainer; other workers of its pool only generate and score. A worker that trains with one engine
   * and samples with another has both roles here.
   */
  readonly role: 'trainer' | 'rollout' | 'reward';
  /** `memory`: the machine's own. `card 0`, `card 1` …: its accelerators. */
  readonly device: string;
  /** Bytes by what they hold, as the engine names it. */
  readonly parts: Readonly<Record<string, number>>;
  /** Memory of one process. */
  readonly bytes: number;
}

/** What the estimate needs to know of the machine. */
export interface MachineMemory {
  readonly bytes: number;
  /** Native's products in bf16, where the recipe leaves it open. */
  readonly bf16: boolean;
  /** Memory of each card that an engine computes on; infinite: not known. Undefined: processors compute. */
  readonly cardBytes: (engine: string) => number | undefined;
  /** Number of cards; absent: not known. */
  readonly cards?: number;
}

/** The models whose shapes decide. */
export interface PlannedModels {
  readonly model: ModelRef;
  /** The teacher of a distillation. */
  readonly teacher?: ModelRef | undefined;
  /** The adapter that is trained beside the model. */
  readonly adapter?: AdapterWanted | undefined;
}

/** Undefined for an engine that does not plan, or not this model. */
export async function memoryOf(
  recipe: Recipe,
  models: PlannedModels,
  machine: MachineMemory,
): Promise<ProcessMemory[] | undefined> {
  const processes: ProcessMemory[] = [];
  let trainers = 1;
  for (const [pool, { roles, workers }] of Object.entries(recipe.fleet.pools)) {
    const trains = roles.includes('trainer') ? Math.min(trainers, workers) : 0;
    trainers -= trains;
    const samples = roles.includes('rollout') && samplesResponses(recipe.kind);
    const counts = [['trainer', trains] as const, [samples ? 'rollout' : 'reward', workers - trains] as const];
    for (const [role, count] of counts.filter(([, workers]) => workers > 0)) {
      const found = await processOf(recipe, models, machine, role, samples);
      if (found === undefined) return undefined;
      for (const { device, parts, role: as } of found) {
        const bytes = Object.values(parts).reduce((sum, part) => sum + part, 0);
        processes.push({ pool, workers: count, role: as, device, parts, bytes });
      }
    }
  }
  return processes;
}

/** Bytes that the processes hold whatever they compute, on each device: a machine with less cannot run them. */
export function bytesOfModels(processes: readonly ProcessMemory[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { device, parts, workers } of processes) {
    const bytes = partsOfModels.reduce((sum, name) => sum + (parts[name] ?? 0), 0);
    sums.set(device, (sums.get(device) ?? 0) + workers * bytes);
  }
  return sums;
}

type DeviceOfRole = DevicePlan & Pick<ProcessMemory, 'role'>;

/**
 * One worker: its trainer and its sampler, which are one where an engine samples from the weights that it trains. A
 * sampler that asks a server (`rollout.url`) has no model of its own.
 */
async function processOf(
  recipe: Recipe,
  models: PlannedModels,
  machine: MachineMemory,
  role: ProcessMemory['role'],
  samples: boolean,
): Promise<readonly DeviceOfRole[] | undefined> {
  const [trainer, sampler] = [recipe.trainer.engine, samplerEngine(recipe)];
  const together = samples && trainer === sampler;
  const engines: (readonly [engine: string, as: ProcessMemory['role'], samples: boolean])[] = [];
  if (role === 'trainer' || together) engines.push([trainer, role, together]);
  if (samples && !together && sampler !== httpName) engines.push([sampler, 'rollout', true]);
  const own = { device: ownMemory, role, parts: { process: processBytes(recipe) } };
  const found: DeviceOfRole[] = [];
  for (const [engine, as, alsoSamples] of engines) {
    const wanted = wantedOf(recipe, models, machine, as, alsoSamples);
    const devices = await plansOf(engine).plan?.({ ...wanted, cardBytes: machine.cardBytes(engine) });
    if (devices === undefined || devices.length === 0) return undefined;
    found.push(...devices.map((device) => ({ ...device, role: as })));
  }
  const first = found.find(({ device }) => device === ownMemory);
  if (first === undefined) return [...found, own];
  return found.map((one) => (one === first ? { ...one, parts: { ...one.parts, ...own.parts } } : one));
}

const processBytes = ({ kind, reward }: Recipe): number =>
  200 * mib + (samplesResponses(kind) ? reward.num_workers * 60 * mib : 0);

function wantedOf(
  recipe: Recipe,
  { model, teacher, adapter }: PlannedModels,
  machine: MachineMemory,
  role: ProcessMemory['role'],
  samples: boolean,
): ProcessWanted {
  const trains = role === 'trainer';
  const { responses, miniBatchResponses, longestSequence } = batchArithmetic(recipe);
  return {
    model,
    compute: computeOf(recipe, machine),
    trained: trains ? trainedComponents(recipe).length : 0,
    frozen: trains ? frozenModels(recipe) : 0,
    ranks: trains ? recipe.trainer.fsdp_size : 1,
    division: trains ? divisionOf(recipe.trainer) : undefined,
    adapter,
    teacher: trains ? teacher : undefined,
    tokens: Math.min(tokensOfPass(recipe), miniBatchResponses * longestSequence),
    sampling: samples
      ? { maxSeqs: Math.min(recipe.rollout.max_num_seqs, responses), maxModelLen: longestSequence }
      : undefined,
    tensorParallel: recipe.rollout.tensor_model_parallel_size,
    machineBytes: machine.bytes,
    cards: machine.cards,
  };
}

/**
 * Frozen models beside the policy: the reference, and a reward model, which is taken to be as large as the policy. The
 * reference of an adapter is the policy with its adapter off.
 */
const frozenModels = (recipe: Recipe): number =>
  (readsReference(recipe) && !trainsAdapter(recipe) ? 1 : 0) + (recipe.reward.reward_model.enable ? 1 : 0);

/** The type of products: the recipe's, or what the trainer's engine chooses where that is left open. */
export function computeOf({ model, deterministic, trainer }: Recipe, machine: MachineMemory): ComputeType {
  const isNative = trainer.engine === 'native';
  if (isNative && !machine.bf16) return 'fp32';
  if (model.compute_dtype !== 'auto') return model.compute_dtype;
  if (deterministic !== false) return 'fp32';
  return isNative || machine.cardBytes(trainer.engine) !== undefined ? 'bf16' : 'fp32';
}
