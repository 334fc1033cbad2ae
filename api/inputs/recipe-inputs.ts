/**
 * What a recipe names outside of itself: model, tokenizer, rows, scorer. Each is looked up once, for `plan` and for
 * `run`.
 */
import { divisionOf, frozenDivision } from '../../core/division.ts';
import { readdir } from 'node:fs/promises';
import type { EnginePlans, ModelFacts } from '../../core/ports/engine-plans.ts';
import type { ModelRef } from '../../core/ports/engines.ts';
import { samplerEngine } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import type { PutBlock } from '../../models/dataset.ts';
import { openTokenizerThread } from '../../models/tokenizer-thread.ts';
import type { BatchTokenizer } from '../../models/tokenizer.ts';
import type { LocalModel } from '../../models/hub.ts';
import { plansOf } from '../engine-plans.ts';
import { locateModel, locateRewardModel, locateTeacher } from './locate-model.ts';
import type { LocatedModel, LocateOptions } from './locate-model.ts';
import { checkedModules } from './own-modules.ts';
import type { CheckedModule } from './own-modules.ts';
import type { PreparePorts } from './prepare-ports.ts';
import { loadRows } from './rows.ts';
import type { RowsPart, RunRows } from './rows.ts';

/** What reading the inputs needs from outside: no store. */
export type InputPorts = Omit<PreparePorts, 'store'>;

export interface TeacherModel {
  readonly folder: string;
  readonly facts: ModelFacts;
}

export class RecipeInputs {
  readonly recipe: Recipe;
  readonly ports: InputPorts;
  readonly #locate: LocateOptions;
  readonly #blocks: ((part: RowsPart) => PutBlock) | undefined;
  readonly #rows = new Map<RowsPart, Promise<RunRows>>();
  #model: Promise<LocatedModel> | undefined;
  #ownModules: Promise<readonly CheckedModule[]> | undefined;
  #teacher: Promise<TeacherModel | undefined> | undefined;
  #rewardModel: Promise<LocalModel | undefined> | undefined;
  #modelFacts: Promise<ModelFacts> | undefined;
  #samplerFacts: Promise<ModelFacts> | undefined;
  #tokenizer: Promise<BatchTokenizer> | undefined;

  /** `blocks`: takes the rows as they are read. Without it they are only checked. */
  constructor(recipe: Recipe, ports: InputPorts, locate: LocateOptions = {}, blocks?: (part: RowsPart) => PutBlock) {
    this.recipe = recipe;
    this.ports = ports;
    this.#locate = locate;
    this.#blocks = blocks;
  }

  /** Throws InvalidInputError, or RetryableError `HubUnreachable`. */
  model(): Promise<LocatedModel> {
    return (this.#model ??= locateModel(this.recipe, this.ports, this.#locate));
  }

  /** Undefined when the recipe has none. Throws as `model`. */
  rewardModel(): Promise<LocalModel | undefined> {
    return (this.#rewardModel ??= locateRewardModel(this.recipe, this.ports, this.#locate));
  }

  /** What the run's engine says of models before it runs. */
  get plans(): EnginePlans {
    return plansOf(this.recipe.trainer.engine);
  }

  /** The model as the run's engine is to open it. Throws as `model`. */
  async modelRef(): Promise<ModelRef> {
    return { folder: (await this.model()).folder, head: this.recipe.kind === 'rm' ? 'scores' : 'tokens' };
  }

  /** Throws InvalidInputError for a model that the engine cannot run. */
  modelFacts(): Promise<ModelFacts> {
    return (this.#modelFacts ??= this.modelRef().then((model) =>
      this.plans.readModel(model, divisionOf(this.recipe.trainer)),
    ));
  }

  /** Throws InvalidInputError for a model that the engine which samples cannot run. Undefined: nothing is sampled. */
  samplerFacts(): Promise<ModelFacts | undefined> {
    const { recipe } = this;
    if (!samplesResponses(recipe.kind)) return Promise.resolve(undefined);
    return (this.#samplerFacts ??= this.modelRef().then((model) => plansOf(samplerEngine(recipe)).readModel(model)));
  }

  /** Modules of the user's own, loaded and tried. Throws InvalidInputError. */
  ownModules(): Promise<readonly CheckedModule[]> {
    return (this.#ownModules ??= checkedModules(this.recipe));
  }

  /** The teacher of a distillation. Throws as `model` and `modelFacts` do. */
  teacher(): Promise<TeacherModel | undefined> {
    return (this.#teacher ??= locateTeacher(this.recipe, this.ports, this.#locate).then(
      async (found) =>
        found && {
          folder: found.folder,
          facts: await this.plans.readModel(
            { folder: found.folder, head: 'tokens' },
            frozenDivision(this.recipe.trainer),
          ),
        },
    ));
  }

  /** Names of the weights' files that are in the folder. */
  async weightFiles(): Promise<string[]> {
    const { folder } = await this.model();
    return (await readdir(folder)).filter((name) => name.endsWith('.safetensors'));
  }

  /** Throws InvalidInputError. */
  tokenizer(): Promise<BatchTokenizer> {
    return (this.#tokenizer ??= this.model().then(({ tokenizerFolder }) => openTokenizerThread(tokenizerFolder)));
  }

  /** A model that cannot be read is refused by its own check. */
  #vocab(): Promise<number | undefined> {
    return this.modelFacts().then(
      ({ vocab }) => vocab,
      () => undefined,
    );
  }

  /** Throws InvalidInputError with file and row number. */
  rows(part: RowsPart): Promise<RunRows> {
    const known = this.#rows.get(part);
    if (known !== undefined) return known;
    const reading = this.tokenizer().then(async (tokenizer) =>
      loadRows(this.recipe, part, tokenizer, this.ports.now, this.#blocks?.(part), { vocab: await this.#vocab() }),
    );
    this.#rows.set(part, reading);
    return reading;
  }
}
