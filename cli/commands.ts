/** Every command, as data. Modules are loaded when they are used. */
import type { CommandSpec } from './command.ts';
import { DATA_COMMANDS } from './commands/data/table.ts';
import { ENGINE_COMMANDS } from './commands/engine/table.ts';
import { FLEET_COMMANDS } from './commands/fleet/table.ts';
import { LEDGER_COMMANDS } from './commands/ledger/table.ts';
import { MACHINE_COMMANDS } from './commands/machine.ts';
import { RUN_COMMANDS } from './commands/runs.ts';
import { SCHEDULE_COMMANDS } from './commands/schedule/table.ts';

/** The nouns that group commands. */
export const NOUNS: Readonly<Record<string, string>> = {
  engine: 'Engines that are installed beside petrel: torch.',
  fleet: 'Workers on other machines.',
  schedule: 'Start runs by the clock: add, list, pause, trigger, remove.',
  ckpt: 'Checkpoints of a run: list, verify, export.',
  ledger: 'The record of what a run trained on.',
  recipe: 'What may stand in a recipe, and recipes from files of verl.',
  data: 'Make rows to train on.',
  model: 'Make a model to start from, or write one in another form.',
};

const overrides = '<recipe> [overrides...]';

const RECIPE_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'init',
    arguments: '[folder]',
    doc: 'Write a commented recipe for your data, model and scorer. Overwrites nothing.',
    group: 'Recipes and data',
    options: [
      { flags: '--data <file>', doc: "rows: verl's layout or GSM8K's; without it a few sums are written" },
      { flags: '--model <model>', doc: 'a folder, or a name on the hub; without it the small base of example 01' },
      { flags: '--reward <scorer>', doc: 'a file, or a built-in scorer; without it scorer.py is written' },
    ],
    examples: ['petrel init my-run', 'petrel init my-run --data rows.jsonl --model org/name --reward gsm8k'],
    load: () => import('./commands/init.ts'),
  },
  {
    name: 'plan',
    arguments: overrides,
    doc: 'Check a recipe as run does, and show its keys, batch arithmetic, memory and disk. Starts nothing.',
    group: 'Recipes and data',
    options: [
      { flags: '--all', doc: 'every key, not only those that differ from the default' },
      {
        flags: '--measure',
        doc: 'run a few small iterations, for seconds per iteration and tokens/s; nothing is kept',
      },
      {
        flags: '--machine <cards>',
        doc: 'memory by device and seconds on such a machine in place of this one: 8xH100, 8x80GiB, 8xH100/2TiB',
      },
    ],
    examples: [
      'petrel plan examples/01-arithmetic-grpo rollout.n=16',
      'petrel plan recipe.yaml --machine 8xH100 trainer.engine=torch rollout.name=vllm',
      'petrel plan recipe.yaml --json | jq .batch',
    ],
    load: () => import('./commands/plan.ts'),
  },
  {
    name: 'recipe import',
    arguments: '<file> [more...]',
    doc: 'Write a recipe from a script, a file of overrides or a YAML of verl, and say what became of each key.',
    group: 'Recipes and data',
    options: [
      { flags: '--out <file>', doc: 'where to; without it the recipe is printed. Replaces nothing' },
      { flags: '--env <name=value...>', doc: 'variables of the script, as in NAME=value bash script.sh' },
      { flags: '--args <value...>', doc: 'arguments of the script, as in bash script.sh 8 /path' },
      { flags: '--call <n>', doc: 'which training, when the script starts several' },
      {
        flags: '--engine <engine>',
        doc: 'torch: for a machine with GPUs, with vLLM to sample',
        choices: ['native', 'torch'],
      },
      { flags: '--dry-run', doc: 'only count the keys, of any number of files' },
    ],
    examples: [
      'petrel recipe import run_grpo.sh --out recipe.yaml',
      'petrel recipe import run_grpo.sh trainer.total_epochs=2 --env DEVICE=gpu MODEL_PATH=org/name',
      'petrel recipe import run_grpo.sh --engine torch --out recipe.yaml',
      'petrel recipe import run_sft.sh --out recipe.yaml --args 8 checkpoints',
      'petrel recipe import --dry-run verl/examples/grpo_trainer/*.sh',
    ],
    load: () => import('./commands/recipe-import.ts'),
  },
  {
    name: 'recipe explain',
    arguments: '[key]',
    doc: 'Explain a key of the recipe, a section, or list them all.',
    group: 'Recipes and data',
    examples: ['petrel recipe explain actor.optim.lr', 'petrel recipe explain rollout'],
    load: () => import('./commands/recipe-explain.ts'),
  },
  {
    name: 'recipe schema',
    doc: 'Print the JSON Schema of recipes, for editors.',
    group: 'Recipes and data',
    examples: ['petrel recipe schema > recipe.schema.json'],
    load: () => import('./commands/recipe-schema.ts'),
  },
  {
    name: 'recipe reference',
    doc: 'Print all keys of a recipe as a Markdown page.',
    group: 'Recipes and data',
    examples: ['petrel recipe reference > recipe-keys.md'],
    load: () => import('./commands/recipe-reference.ts'),
  },
  {
    name: 'model init',
    arguments: '<folder>',
    doc: 'Write random weights for the config.json and tokenizer of a folder.',
    group: 'Recipes and data',
    options: [
      { flags: '--out <folder>', doc: 'where to', required: true },
      { flags: '--seed <n>', doc: 'seed of the weights', default: '0' },
    ],
    examples: ['petrel model init examples/00-arithmetic-sft/base --out ./fresh'],
    load: () => import('./commands/model-init.ts'),
  },
  {
    name: 'model onnx',
    arguments: '<folder>',
    doc: 'Write a reward model of transformers as ONNX, and compare its scores. Needs Python with torch (PETREL_PYTHON).',
    group: 'Recipes and data',
    options: [{ flags: '--out <folder>', doc: 'where to', required: true }],
    examples: ['petrel model onnx ./classifier --out ./classifier-onnx'],
    load: () => import('./commands/model-onnx.ts'),
  },
];

/** Prints pages of the docs, one of which is this whole table. */
const REFERENCE: CommandSpec = {
  name: 'reference',
  arguments: '<page>',
  doc: 'Print a page of the docs that is made from the code: commands, or metrics.',
  group: 'This machine',
  examples: ['petrel reference commands > commands.md', 'petrel reference metrics > metrics.md'],
  load: async () => (await import('./commands/reference.ts')).referenceOf(COMMANDS),
};

/** All commands, in the order of the help. */
export const COMMANDS: readonly CommandSpec[] = [
  ...RUN_COMMANDS,
  ...SCHEDULE_COMMANDS,
  ...LEDGER_COMMANDS,
  ...RECIPE_COMMANDS,
  ...DATA_COMMANDS,
  ...MACHINE_COMMANDS,
  ...ENGINE_COMMANDS,
  ...FLEET_COMMANDS,
  REFERENCE,
];
