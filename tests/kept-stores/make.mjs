/**
 * Makes a kept store: `node tests/kept-stores/make.mjs [--few | --critic] <built checkout> <archive.tar.gz>`.
 *
 * Two stacks of that checkout share one store and leave runs of every kind in every state; README.md lists them. The
 * script works in /tmp/kept, so that no record can hold another path of this machine, and it imports nothing of petrel,
 * so that it can make a store with any version.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const usage = 'usage: node tests/kept-stores/make.mjs [--few | --critic] <built checkout> <archive.tar.gz>';
/** A value model is trained beside the policy. */
const critic = process.argv.includes('--critic');
const few = critic || process.argv.includes('--few');
const [checkout, archive] = process.argv
  .slice(2)
  .filter((word) => !['--few', '--critic'].includes(word))
  .map((path) => resolve(path));
if (checkout === undefined || archive === undefined) throw new Error(usage);

const place = '/tmp/kept';
const work = join(place, 'work');
const store = join(place, 'store');
/** A step that has not happened after this time never will happen. */
const patienceMs = 120_000;

/** A petrel home with a separate stack. `faults` is the folder from which its processes read armed faults. */
class Stack {
  constructor(name) {
    this.home = join(place, name);
    this.faults = join(place, `${name}-faults`);
    for (const folder of [this.home, join(this.faults, 'armed'), join(this.faults, 'fired')])
      mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(join(this.home, 'stack-name'), `${name}\n`);
    const machineHome = process.env['PETREL_HOME'] || join(homedir(), '.petrel');
    symlinkSync(join(machineHome, 'toolchain'), join(this.home, 'toolchain'));
  }

  /** Runs a command to its end and returns its output. Throws when it fails. */
  petrel(...words) {
    const { status, stdout, stderr } = this.try(...words);
    if (status !== 0) throw new Error(`petrel ${words.join(' ')} ended with ${status}\n${stdout}\n${stderr}`);
    return stdout;
  }

  try(...words) {
    console.log(`petrel ${words.join(' ')}`);
    const env = { ...process.env, PETREL_HOME: this.home, PETREL_FAULTS: this.faults, NO_COLOR: '1' };
    return spawnSync(process.execPath, [join(checkout, 'cli/bin.mjs'), ...words], { cwd: work, env, encoding: 'utf8' });
  }

  /** Starts a run, and returns when one of its processes is stopped at the fault point. */
  async runTo(fault, ...words) {
    const id = words.join('-').replaceAll(/[^\w.-]/g, '_');
    writeFileSync(join(this.faults, 'armed', `${id}.json`), JSON.stringify({ id, action: 'stand', ...fault }));
    this.petrel('run', ...words, '-d');
    const fired = join(this.faults, 'fired', `${id}.json`);
    await until(`fault ${id}`, () => existsSync(fired));
    return await until(`fault ${id} written`, () => readWhole(fired)?.pid);
  }

  /** Gives a command to a stopped run, resumes it, and returns when it has the state. */
  async endAs(state, command, name, pid) {
    this.petrel(...command, name);
    process.kill(pid, 'SIGCONT');
    await until(`${name} ${state}`, () => JSON.parse(this.petrel('status', name, '--json')).state === state);
  }

  /** Sends SIGKILL to every process. The supervisor is stopped first, so that it starts none again. */
  killEverything() {
    const { pid, children } = JSON.parse(readFileSync(join(this.home, 'stack/stack.json'), 'utf8'));
    process.kill(pid, 'SIGSTOP');
    for (const child of children) if (child.pid !== undefined) process.kill(child.pid, 'SIGKILL');
    process.kill(pid, 'SIGKILL');
  }
}

/** Undefined while the file is incomplete. */
function readWhole(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

async function until(what, probe) {
  for (const end = Date.now() + patienceMs; Date.now() < end; await delay(50)) {
    const found = await probe();
    if (found) return found;
  }
  throw new Error(`${what}: it did not happen within ${patienceMs} ms`);
}

const write = (name, content) =>
  writeFileSync(join(work, name), typeof content === 'string' ? content : `${JSON.stringify(content, null, 1)}\n`);

function makeInputs() {
  const base = join(checkout, 'examples/00-arithmetic-sft/base');
  const config = JSON.parse(readFileSync(join(base, 'config.json'), 'utf8'));
  const sizes = { hidden_size: 16, intermediate_size: 32, num_hidden_layers: 1, num_attention_heads: 1 };
  mkdirSync(join(work, 'config'), { recursive: true });
  for (const file of readdirSync(base)) write(`config/${file}`, readFileSync(join(base, file), 'utf8'));
  write('config/config.json', { ...config, ...sizes, num_key_value_heads: 1, initializer_range: 0.1 });
  const lines = (example, from, to) =>
    `${readFileSync(join(checkout, 'examples', example), 'utf8')
      .split('\n')
      .slice(from, to)
      .join('\n')}\n`;
  write('train.jsonl', lines('01-arithmetic-grpo/train.jsonl', 0, 24));
  write('validation.jsonl', lines('01-arithmetic-grpo/validation.jsonl', 0, 4));
  write('lessons.jsonl', lines('00-arithmetic-sft/train.jsonl', 0, 24));
  write(
    'sevens.mjs',
    `/** The share of sevens: a policy with random weights learns it at once. */
export const computeScore = ({ solutionStr }) =>
  [...solutionStr].filter((c) => c === '7').length / Math.max(1, solutionStr.length);
`,
  );
}

/** JSON is YAML. */
function makeRecipes() {
  const shared = {
    store,
    model: { path: './model' },
    actor: { ppo_mini_batch_size: 4, ppo_max_token_len_per_gpu: 64, optim: { lr: 0.003, weight_decay: 0 } },
    trainer: { total_training_steps: 6, save_freq: 2, test_freq: 3, val_before_train: false },
  };
  const rl = {
    ...shared,
    data: { train_files: './train.jsonl', train_batch_size: 4, max_prompt_length: 8, max_response_length: 5 },
    rollout: { n: 4, max_num_seqs: 8 },
  };
  const sevens = { custom_reward_function: { path: './sevens.mjs', deterministic: true } };
  write('grpo.yaml', {
    ...rl,
    data: { ...rl.data, val_files: './validation.jsonl' },
    reward: sevens,
    deterministic: true,
    ...(critic && { critic: { enable: true, optim: { lr: 0.01 } } }),
  });
  write('plain.yaml', { ...rl, actor: { ...rl.actor, use_kl_loss: true, ppo_epochs: 2 }, reward: { scorer: 'exact' } });
  write('sft.yaml', {
    ...shared,
    kind: 'sft',
    data: { train_files: './lessons.jsonl', train_batch_size: 4, max_length: 24 },
  });
}

/** All steps except the killed runs, because a running stack would continue those. */
async function makeEnded(stack) {
  stack.petrel('model', 'init', 'config', '--out', 'model');
  stack.petrel('run', 'grpo.yaml', '--name', 'grpo-completed', '--wait');
  stack.petrel('run', 'plain.yaml', '--name', 'plain-completed', '--wait');
  stack.petrel('run', 'sft.yaml', 'deterministic=true', '--name', 'sft-completed', '--wait');
  stack.petrel('fork', 'grpo-completed', '--from', '3', 'actor.optim.lr=0.001', '--name', 'grpo-fork', '--wait');
  stack.petrel('run', 'grpo.yaml', '--name', 'grpo-redone', '--wait');
  stack.petrel(...'resume grpo-redone --from 2 --skip-draws actor.optim.lr=0.001 --accept --wait'.split(' '));
  stack.petrel(
    ...'run grpo.yaml --name grpo-trimmed trainer.max_actor_ckpt_to_keep=2 trainer.save_freq=1 --wait'.split(' '),
  );
  for (let pass = 0; pass < 3; pass++) stack.petrel('gc', '--grace', '0s');
  stack.petrel('schedule', 'add', 'plain.yaml', '--name', 'weekly', '--every', '7d', 'trainer.total_training_steps=2');
  stack.petrel('schedule', 'trigger', 'weekly');
  stack.petrel('schedule', 'pause', 'weekly', '--note', 'kept');
  await until('the scheduled run', () => {
    const answer = stack.try('status', 'weekly', '--json');
    return answer.status === 0 && JSON.parse(answer.stdout).state === 'completed';
  });
  stack.try('run', 'grpo.yaml', '--name', 'grpo-failed', 'reward.reward_kwargs.key=env:KEPT_KEY', '--wait');
  await endInIteration3(stack, 'grpo-paused', 'paused', 'pause');
  await endInIteration3(stack, 'grpo-stopped', 'stopped', 'stop');
  await endInIteration3(stack, 'grpo-cancelled', 'cancelled', 'cancel', '--yes');
}

/** One completed run, one stopped and one killed. */
async function makeFew(stack) {
  stack.petrel('model', 'init', 'config', '--out', 'model');
  stack.petrel('run', 'grpo.yaml', '--name', 'grpo-completed', '--wait');
  await endInIteration3(stack, 'grpo-stopped', 'stopped', 'stop');
  await makeKilled(stack);
}

async function endInIteration3(stack, name, state, ...command) {
  const third = { point: 'decide.before', facts: { kind: 'update', iteration: 3 } };
  await stack.endAs(state, command, name, await stack.runTo(third, 'grpo.yaml', '--name', name));
}

/** Makes a killed run, whose batch 4 is committed and not applied. */
async function makeKilled(stack) {
  await stack.runTo(
    { point: 'decide.after', facts: { kind: 'batch', iteration: 4 } },
    'grpo.yaml',
    '--name',
    'grpo-killed',
  );
  stack.killEverything();
}

/** Makes a killed run, whose trainer was writing the weights of iteration 5. */
async function makeKilledLessons(stack) {
  await stack.runTo({ point: 'write.step', facts: { iteration: 5 } }, 'sft.yaml', '--name', 'sft-killed');
  stack.killEverything();
}

/** Every file of the store that contains a path of this machine, and every text that contains its name. */
function strayPlaces() {
  const hostname = execFileSync('hostname', { encoding: 'utf8' }).trim();
  // A short name stands in binary files by chance.
  const searches = [
    ['-rlaE', `/root|/home/|/work/|${checkout}`],
    ['-rlIw', hostname],
  ];
  return searches.map((words) => spawnSync('grep', [...words, store], { encoding: 'utf8' }).stdout).join('');
}

rmSync(place, { recursive: true, force: true });
mkdirSync(work, { recursive: true });
makeInputs();
makeRecipes();
const [first, second] = [new Stack('kept-a'), new Stack('kept-b')];
try {
  if (few) await makeFew(first);
  else {
    await makeEnded(first);
    await makeKilledLessons(second);
    await makeKilled(first);
  }
} finally {
  for (const stack of few ? [first] : [first, second]) stack.try('down');
}
const places = strayPlaces();
if (places !== '') throw new Error(`these files name places of this machine:\n${places}`);
mkdirSync(join(archive, '..'), { recursive: true });
execFileSync('tar', ['-C', place, '--owner=0', '--group=0', '--sort=name', '-czf', archive, 'store']);
console.log(`${archive}: ${statSync(archive).size} bytes`);
