/**
 * Starts a run, follows it, checks its ledger and exports the policy: petrel from a program, without its command line.
 */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openStack, PetrelError } from 'petrel';

const iterations = Number(process.argv[2] ?? 20);
const out = process.argv[3] ?? join(mkdtempSync(join(tmpdir(), 'petrel-')), 'trained');

const stack = openStack({ home: process.env.PETREL_HOME, env: process.env, notice: (text) => console.error(text) });

try {
  const run = await stack.start({
    recipe: '01-arithmetic-grpo', // an example that comes with petrel; a path of your own works as well
    overrides: [`trainer.total_training_steps=${iterations}`, 'name=from-a-program'],
  });

  // Ctrl-C stops the run with a checkpoint; `(await stack.run('from-a-program')).resume()` would continue it.
  process.once('SIGINT', () => void run.request('stop'));

  let seen = 0;
  const state = await run.follow(({ iteration, reward, tokensPerSecond }) => {
    if (iteration === seen) return;
    seen = iteration;
    console.log(`${iteration}  reward ${reward?.toFixed(3)}  ${Math.round(tokensPerSecond ?? 0)} tokens/s`);
  });
  console.log(`${run.id} is ${state}`);

  const rewards = (await run.metrics()).map(({ metrics }) => metrics['critic/score/mean']).filter(Number.isFinite);
  console.log(`reward ${rewards.at(0)?.toFixed(3)} -> ${rewards.at(-1)?.toFixed(3)}`);

  const verdict = await run.verify();
  if (!verdict.ok) throw new Error(`the ledger has faults: ${JSON.stringify(verdict.faults, null, 2)}`);

  const { iteration, dtype, folder } = await run.export({ folder: out });
  console.log(`the policy after iteration ${iteration}, ${dtype}: ${folder}`);
} catch (error) {
  if (!(error instanceof PetrelError)) throw error;
  console.error(`${error.message}\n${error.hint ?? ''}`);
  process.exitCode = 1;
}

console.log('The servers go on for other runs. `await stack.down()`, or `petrel down`, stops them.');
