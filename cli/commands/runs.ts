/** Commands about runs and their checkpoints. */
import type { CommandSpec, OptionSpec } from '../command.ts';

const RUN_WORD = '<run>';
const lines: OptionSpec = { flags: '-n, --lines <n>', doc: 'newest lines', default: '100' };
const yes: OptionSpec = { flags: '-y, --yes', doc: 'do not ask' };
const wait: OptionSpec = { flags: '--wait', doc: 'stay to the end; the exit code tells how it ended' };

export const RUN_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'run',
    arguments: '<recipe> [overrides...]',
    doc: 'Start a run and show its progress. Ctrl-C leaves it going.',
    group: 'Runs',
    options: [
      { flags: '--name <name>', doc: 'name of the run; its id is made from it' },
      { flags: '-d, --detach', doc: 'print the id and return' },
      wait,
    ],
    examples: [
      'petrel run examples/01-arithmetic-grpo',
      'petrel run recipe.yaml actor.optim.lr=3e-5 rollout.n=16 --name wide --wait',
    ],
    load: () => import('./run.ts'),
  },
  {
    name: 'ls',
    doc: 'List runs, newest first.',
    group: 'Runs',
    options: [
      { flags: '-n, --limit <n>', doc: 'how many', default: '20' },
      { flags: '--all', doc: 'all of them' },
      { flags: '--state <state>', doc: 'only those in this state' },
    ],
    load: () => import('./ls.ts'),
  },
  {
    name: 'status',
    arguments: '[run]',
    doc: 'Show where a run is, what it waits for, and who works for it.',
    group: 'Runs',
    options: [{ flags: '-w, --watch', doc: 'keep showing' }],
    load: () => import('./status.ts'),
  },
  {
    name: 'logs',
    arguments: RUN_WORD,
    doc: 'Show what the processes said about a run.',
    group: 'Runs',
    options: [{ flags: '-f, --follow', doc: 'go on as more comes' }, lines],
    load: () => import('./logs.ts'),
  },
  {
    name: 'metrics',
    arguments: '<run> [names...]',
    doc: 'Show metrics by iteration.',
    group: 'Runs',
    options: [
      { flags: '-n, --last <n>', doc: 'newest iterations' },
      { flags: '--list', doc: 'the names there are, with unit and doc' },
    ],
    examples: [
      'petrel metrics arithmetic critic/score/mean actor/pg_loss',
      'petrel metrics arithmetic --json > metrics.json',
    ],
    load: () => import('./metrics.ts'),
  },
  {
    name: 'samples',
    arguments: RUN_WORD,
    doc: 'Show prompts, completions and rewards of an iteration.',
    group: 'Runs',
    options: [
      { flags: '-i, --iteration <k>', doc: 'which one; left out: the newest' },
      { flags: '-n, --limit <n>', doc: 'how many samples', default: '8' },
      { flags: '--all', doc: 'all of them' },
      { flags: '--prompt <draw>', doc: 'only the samples of this draw' },
      { flags: '--validation', doc: 'those of a validation; --iteration is the policy version' },
    ],
    load: () => import('./samples.ts'),
  },
  {
    name: 'pause',
    arguments: RUN_WORD,
    doc: 'Hold a run after its next decision. Nothing is lost.',
    group: 'Runs',
    load: () => import('./pause.ts'),
  },
  {
    name: 'resume',
    arguments: '<run> [overrides...]',
    doc: 'Go on with a paused or stopped run, or with one of another stack.',
    group: 'Runs',
    options: [
      { flags: '--from <k>', doc: 'after iteration k, in a new term; later ones no longer count' },
      { flags: '--skip-draws', doc: 'with --from: never use the draws of the iterations given up again' },
      { flags: '--recipe <file>', doc: 'go on with this recipe' },
      { flags: '--store <url>', doc: 'the store where it lies, when this machine does not know it yet' },
      { flags: '--accept', doc: 'yes to what is given up, changed or taken over' },
      { flags: '--skip', doc: 'skip the batch that waits for its update, because it crashes every trainer' },
      wait,
    ],
    examples: [
      'petrel resume arithmetic actor.optim.lr=1e-5 --accept',
      'petrel resume arithmetic --from 12 --skip-draws --accept',
      'petrel resume arithmetic --store s3://bucket/runs',
    ],
    load: () => import('./resume.ts'),
  },
  {
    name: 'fork',
    arguments: '<run> [overrides...]',
    doc: 'Start another run that begins with a state of this one.',
    group: 'Runs',
    options: [
      { flags: '--from <k>', doc: 'the state after iteration k; left out: the newest' },
      { flags: '--recipe <file>', doc: 'go on with this recipe' },
      { flags: '--name <name>', doc: 'name of the new run; left out: that of its origin' },
      { flags: '--store <url>', doc: 'the store where it lies, when this machine does not know it yet' },
      wait,
    ],
    examples: ['petrel fork arithmetic --from 12 actor.optim.lr=1e-5 --name gentle'],
    load: () => import('./fork.ts'),
  },
  {
    name: 'stop',
    arguments: RUN_WORD,
    doc: 'Finish the update, write a checkpoint and end. resume goes on.',
    group: 'Runs',
    options: [wait],
    load: () => import('./stop.ts'),
  },
  {
    name: 'cancel',
    arguments: RUN_WORD,
    doc: 'End a run where it is.',
    group: 'Runs',
    options: [yes],
    load: () => import('./cancel.ts'),
  },
  {
    name: 'rm',
    arguments: RUN_WORD,
    doc: 'Delete a run that has ended, with all it made.',
    group: 'Runs',
    options: [yes],
    load: () => import('./rm.ts'),
  },
  {
    name: 'gc',
    doc: 'Remove what no run needs any more. The janitor does it every ten minutes while the stack is up.',
    group: 'Runs',
    options: [
      { flags: '--dry-run', doc: 'show what would go; change nothing' },
      { flags: '--grace <duration>', doc: 'remove what was found superfluous this long ago', default: '10m' },
    ],
    examples: ['petrel gc --dry-run'],
    load: () => import('./gc.ts'),
  },
  {
    name: 'ckpt ls',
    arguments: RUN_WORD,
    doc: 'List the checkpoints of a run.',
    group: 'Checkpoints',
    load: () => import('./ckpt/ls.ts'),
  },
  {
    name: 'ckpt verify',
    arguments: '<run> [iteration]',
    doc: 'Read checkpoints and the batches after them, and compare their digests.',
    group: 'Checkpoints',
    load: () => import('./ckpt/verify.ts'),
  },
  {
    name: 'ckpt export',
    arguments: '<run> [iteration]',
    doc: 'Write a Hugging Face folder.',
    group: 'Checkpoints',
    options: [
      { flags: '--out <folder>', doc: 'where to', required: true },
      { flags: '--dtype <dtype>', doc: 'type of the tensors', choices: ['auto', 'fp32', 'bf16'], default: 'auto' },
    ],
    examples: ['petrel ckpt export arithmetic --out ./trained'],
    load: () => import('./ckpt/export.ts'),
  },
];
