/** Memory and disk that a run needs, against what this machine has, or what one has that is asked about. */
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PetrelError } from '../../core/errors.ts';
import { showBytes } from '../../core/quantities.ts';
import { ownMemory } from '../../core/ports/engine-plans.ts';
import { freeBytes } from '../../log/objects/free-space.ts';
import { storeUrl } from '../../infra/store/open.ts';
import { defaultStore } from '../../infra/store/places.ts';
import type { PlanCheck } from '../checks/checks.ts';
import { adapterElements } from '../engine-memory/adapter.ts';
import { shapeOf } from '../engine-memory/model-facts.ts';
import type { RecipeInputs } from '../inputs/recipe-inputs.ts';
import type { StatedMachine } from '../memory/cards.ts';
import { machineUse, memoryOfMachine, tooLittle } from '../memory/devices.ts';
import type { MachineUse } from '../memory/devices.ts';
import { plannedModels } from '../memory/planned-models.ts';
import { computeOf, memoryOf } from '../memory/processes.ts';
import type { PlannedModels, ProcessMemory } from '../memory/processes.ts';
import { thisMachine } from '../memory/this-machine.ts';
import { diskOf } from './disk.ts';
import type { DiskUse } from './disk.ts';
import { stageSeconds } from './seconds.ts';
import type { StageSeconds } from './seconds.ts';

export interface Resources {
  /** What this machine's own memory holds. Absent when another machine is asked about. */
  readonly memory?: {
    readonly processes: readonly ProcessMemory[];
    /** The machine's own memory that all processes take together. */
    readonly bytes: number;
    readonly machineBytes: number;
    /** Processes hold more on cards, whose memory is not known here. */
    readonly hasCards: boolean;
  };
  /** What the machine holds that is asked about. */
  readonly machine?: MachineUse & {
    /** Stages of an iteration. Absent for a card of which only the memory is stated. */
    readonly seconds?: readonly StageSeconds[];
  };
  readonly disk: DiskUse;
}

/**
 * Undefined for a model that cannot be read, or whose engine does not plan. `checkpoints`: how many the run writes;
 * null: not known.
 */
export async function resourcesOf(
  inputs: RecipeInputs,
  checkpoints: number | null,
  stated: StatedMachine | undefined,
): Promise<Resources | undefined> {
  const facts = await inputs.modelFacts().catch(asUnknown);
  if (facts?.parameters === undefined) return undefined;
  const models = await plannedModels(inputs).catch(asUnknown);
  if (models === undefined) return undefined;
  const use = stated === undefined ? onThisMachine(inputs, models) : onStatedMachine(inputs, models, stated);
  const taken = await use.catch(asUnknown);
  if (taken === undefined) return undefined;
  const { recipe, ports } = inputs;
  const room = { modelBytes: await modelBytes(inputs), freeBytes: await freeIn(recipe.store, ports.home) };
  const learning = (await adapterParameters(models)) ?? facts.parameters;
  return { ...taken, disk: diskOf(recipe, learning, checkpoints, room) };
}

async function onThisMachine(
  { recipe, ports }: RecipeInputs,
  models: PlannedModels,
): Promise<Pick<Resources, 'memory'> | undefined> {
  const machine = thisMachine(ports.home);
  const all = await memoryOf(recipe, models, machine);
  if (all === undefined) return undefined;
  const processes = all.filter(({ device }) => device === ownMemory);
  const bytes = processes.reduce((sum, process) => sum + process.workers * process.bytes, 0);
  return { memory: { processes, bytes, machineBytes: machine.bytes, hasCards: processes.length < all.length } };
}

async function onStatedMachine(
  { recipe }: RecipeInputs,
  models: PlannedModels,
  stated: StatedMachine,
): Promise<Pick<Resources, 'machine'> | undefined> {
  const use = await machineUse(recipe, models, stated);
  if (use === undefined) return undefined;
  const shape = await shapeOf(models.model);
  const compute = computeOf(recipe, memoryOfMachine(stated));
  const seconds = shape && stageSeconds(recipe, shape, stated, compute);
  return { machine: { ...use, ...(seconds && { seconds }) } };
}

async function adapterParameters({ model, adapter }: PlannedModels): Promise<number | undefined> {
  const shape = adapter && (await shapeOf(model));
  return shape && adapterElements(shape, adapter);
}

/** What is more than there is, as lines of the checks. */
export function resourceChecks(resources: Resources, inputs: RecipeInputs): PlanCheck[] {
  return [machineCheck(resources, inputs), memoryWarning(resources), diskWarning(resources)].flatMap(
    (check) => check ?? [],
  );
}

/** A machine that is asked about and is too small is a refusal. */
function machineCheck({ machine }: Resources, { recipe }: RecipeInputs): PlanCheck | undefined {
  const found = machine && tooLittle(machine, recipe);
  return found && { name: 'memory', status: 'failed', code: 'TooLittleMemory', ...found };
}

function memoryWarning({ memory }: Resources): PlanCheck | undefined {
  if (memory === undefined || memory.bytes <= memory.machineBytes) return undefined;
  const detail = `the run needs about ${showBytes(memory.bytes)}, this machine has ${showBytes(memory.machineBytes)}`;
  const hint = 'a smaller actor.ppo_max_token_len_per_gpu, rollout.max_num_seqs, model, or fewer workers need less';
  return { name: 'memory', status: 'warning', detail, hint };
}

function diskWarning({ disk }: Resources): PlanCheck | undefined {
  const needed = disk.bytes ?? disk.modelBytes + 2 * disk.checkpointBytes;
  if (disk.freeBytes === null || needed <= disk.freeBytes) return undefined;
  const detail = `the run needs about ${showBytes(needed)} in its store, ${showBytes(disk.freeBytes)} are free`;
  const hint = 'keep fewer checkpoints: trainer.max_actor_ckpt_to_keep=2; or write them more rarely: trainer.save_freq';
  return { name: 'disk', status: 'warning', detail, hint };
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
