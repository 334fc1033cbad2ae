/**
 * Memory of the worker processes of a run: what its engine says of each, and 200 MiB for Node, the engine and its
 * libraries and the rows, and 60 MiB for each scorer process. A trainer may have to hold the critic also with
 * critic.own_trainer.
 */
import type { ComputeType } from '../../core/parameters.ts';
import type { EnginePlans, ProcessWanted } from '../../core/ports/engine-plans.ts';
import type { ModelRef } from '../../core/ports/engines.ts';
import { batchArithmetic, readsReference, trainedComponents } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { samplesResponses } from '../../core/run-kinds.ts';

const mib = 2 ** 20;

/** Memory of the processes of one kind in one pool on one device. */
export interface ProcessMemory {
  readonly pool: string;
  readonly workers: number;
  /** The run has one trainer; other workers of its pool only generate and score. */
  readonly role: 'trainer' | 'rollout' | 'reward';
  /** `memory`: the machine's own. */
  readonly device: string;
  /** Bytes by what they hold, as the engine names it. */
  readonly parts: Readonly<Record<string, number>>;
  /** Memory of one process. */
  readonly bytes: number;
}

/** What the estimate needs to know of the machine. */
export interface MachineMemory {
  readonly bytes: number;
  /** Products in bf16, where the recipe leaves it open. */
  readonly bf16: boolean;
}

/** The models whose shapes decide. */
export interface PlannedModels {
  readonly model: ModelRef;
  /** The teacher of a distillation. */
  readonly teacher?: ModelRef | undefined;
}

/** Undefined for an engine that does not plan. */
export async function memoryOf(
  recipe: Recipe,
  plans: EnginePlans,
  models: PlannedModels,
  machine: MachineMemory,
): Promise<ProcessMemory[] | undefined> {
  if (plans.plan === undefined) return undefined;
  const processes: ProcessMemory[] = [];
  let trainers = 1;
  for (const [pool, { roles, workers }] of Object.entries(recipe.fleet.pools)) {
    const trains = roles.includes('trainer') ? Math.min(trainers, workers) : 0;
    trainers -= trains;
    const samples = roles.includes('rollout') && samplesResponses(recipe.kind);
    const counts = [['trainer', trains] as const, [samples ? 'rollout' : 'reward', workers - trains] as const];
    for (const [role, count] of counts.filter(([, workers]) => workers > 0)) {
      const wanted = wantedOf(recipe, models, machine, role, samples);
      const devices = role === 'reward' ? [{ device: 'memory', parts: {} }] : await plans.plan(wanted);
      for (const { device, parts: own } of devices) {
        const parts = device === 'memory' ? { ...own, process: processBytes(recipe) } : own;
        const bytes = Object.values(parts).reduce((sum, part) => sum + part, 0);
        processes.push({ pool, workers: count, role, device, parts, bytes });
      }
    }
  }
  return processes;
}

const processBytes = ({ kind, reward }: Recipe): number =>
  200 * mib + (samplesResponses(kind) ? reward.num_workers * 60 * mib : 0);

function wantedOf(
  recipe: Recipe,
  { model, teacher }: PlannedModels,
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
    teacher: trains ? teacher : undefined,
    tokens: Math.min(recipe.actor.ppo_max_token_len_per_gpu, miniBatchResponses * longestSequence),
    sampling: samples
      ? { maxSeqs: Math.min(recipe.rollout.max_num_seqs, responses), maxModelLen: longestSequence }
      : undefined,
    machineBytes: machine.bytes,
  };
}

/** Frozen models beside the policy: the reference, and a reward model, which is taken to be as large as the policy. */
const frozenModels = (recipe: Recipe): number =>
  (readsReference(recipe) ? 1 : 0) + (recipe.reward.reward_model.enable ? 1 : 0);

function computeOf({ model, deterministic }: Recipe, machine: MachineMemory): ComputeType {
  if (!machine.bf16) return 'fp32';
  if (model.compute_dtype !== 'auto') return model.compute_dtype;
  return deterministic === false ? 'bf16' : 'fp32';
}
