/** Memory and disk that a run needs, against what this machine has. */
import { existsSync, readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PetrelError } from '../../core/errors.ts';
import { showBytes } from '../../core/quantities.ts';
import { machineBytes } from '../../infra/machine-memory.ts';
import { freeBytes } from '../../infra/store/free-space.ts';
import { storeUrl } from '../../infra/store/open.ts';
import { defaultStore } from '../../infra/store/places.ts';
import type { PlanCheck } from '../checks/checks.ts';
import { diskOf } from './disk.ts';
import type { DiskUse } from './disk.ts';
import { memoryOf } from './memory.ts';
import type { ProcessMemory } from './memory.ts';
import type { RecipeInputs } from '../inputs/recipe-inputs.ts';

export interface Resources {
  readonly memory: {
    readonly processes: readonly ProcessMemory[];
    /** The machine's own memory that all processes take together. */
    readonly bytes: number;
    readonly machineBytes: number;
  };
  readonly disk: DiskUse;
}

/**
 * Undefined for a model that cannot be read, or whose engine does not plan. `checkpoints`: how many the run writes;
 * null: not known.
 */
export async function resourcesOf(inputs: RecipeInputs, checkpoints: number | null): Promise<Resources | undefined> {
  const facts = await inputs.modelFacts().catch(asUnknown);
  if (facts?.parameters === undefined) return undefined;
  const teacher = await inputs.teacher().catch(asUnknown);
  const models = {
    model: await inputs.modelRef(),
    teacher: teacher && ({ folder: teacher.folder, head: 'tokens' } as const),
  };
  const machine = { bytes: machineBytes(), bf16: /\bavx512_bf16\b/.test(readFileSync('/proc/cpuinfo', 'utf8')) };
  const processes = await memoryOf(inputs.recipe, inputs.plans, models, machine);
  if (processes === undefined) return undefined;
  const bytes = processes
    .filter(({ device }) => device === 'memory')
    .reduce((sum, process) => sum + process.workers * process.bytes, 0);
  const { recipe, ports } = inputs;
  const room = { modelBytes: await modelBytes(inputs), freeBytes: await freeIn(recipe.store, ports.home) };
  return {
    memory: { processes, bytes, machineBytes: machine.bytes },
    disk: diskOf(recipe, facts.parameters, checkpoints, room),
  };
}

/** What is more than there is, as lines of the checks. */
export function resourceWarnings({ memory, disk }: Resources): PlanCheck[] {
  const warnings: PlanCheck[] = [];
  if (memory.bytes > memory.machineBytes) {
    const detail = `the run needs about ${showBytes(memory.bytes)}, this machine has ${showBytes(memory.machineBytes)}`;
    const hint = 'a smaller actor.ppo_max_token_len_per_gpu, rollout.max_num_seqs, model, or fewer workers need less';
    warnings.push({ name: 'memory', status: 'warning', detail, hint });
  }
  const needed = disk.bytes ?? disk.modelBytes + 2 * disk.checkpointBytes;
  if (disk.freeBytes !== null && needed > disk.freeBytes) {
    const detail = `the run needs about ${showBytes(needed)} in its store, ${showBytes(disk.freeBytes)} are free`;
    const hint =
      'keep fewer checkpoints: trainer.max_actor_ckpt_to_keep=2; or write them more rarely: trainer.save_freq';
    warnings.push({ name: 'disk', status: 'warning', detail, hint });
  }
  return warnings;
}

async function modelBytes(inputs: RecipeInputs): Promise<number> {
  const { folder, missingBytes = 0 } = await inputs.model();
  const sizes = (await inputs.weightFiles()).map(async (name) => (await stat(join(folder, name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, missingBytes);
}

/** Free bytes in the folder, or in the nearest one above it that exists. */
async function freeIn(where: string | null, home: string): Promise<number | null> {
  const url = storeUrl(where ?? defaultStore(home));
  if (!url.startsWith('file:')) return null;
  let folder = fileURLToPath(url);
  while (!existsSync(folder)) folder = dirname(folder);
  return freeBytes(folder);
}

function asUnknown(error: unknown): undefined {
  if (!(error instanceof PetrelError)) throw error;
  return undefined;
}
