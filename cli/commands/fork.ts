/** `petrel fork <run> [key=value...] [--from k]`: another run that begins with a state of this one. */
import { petrelHome } from '../../infra/home.ts';
import { pinPosition } from '../../infra/retention/entries.ts';
import { noteDrivenRun } from '../../infra/stack/driven-runs.ts';
import { ensureFences } from '../../infra/store/fencing.ts';
import { rememberStore } from '../../infra/store/places.ts';
import type { CommandContext, CommandInput } from '../command.ts';
import { EXIT, exitCodeOfState, type ExitCode } from '../exit-codes.ts';
import { flag, integerOption, textOption, word } from '../options.ts';
import { changedRecipe, changeText, inAFork } from '../runs/changed-recipe.ts';
import { driverAfterUp } from '../runs/driver.ts';
import { findRun } from '../runs/find.ts';
import { createFork, originAt, revisionAfter } from '../runs/fork.ts';
import { waitForEnd } from '../runs/wait.ts';

/** Writing a fork down takes no longer. */
const pinnedMs = 600_000;

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer, env, cwd } = context;
  const home = petrelHome(env);
  const found = await findRun(word(input, 0), context, textOption(input, 'store'));
  const { store } = found.log;
  const origin = await originAt(found, integerOption(input, 'from', 0));
  const name = textOption(input, 'name');
  const words = {
    overrides: [...input.words.slice(1), ...(name === undefined ? [] : [`name=${name}`])],
    file: textOption(input, 'recipe'),
    cwd,
  };
  const revision = await revisionAfter(found.log, origin.position);
  const now = new Date();
  const changed = await changedRecipe(words, revision, inAFork, { store, home, env, now, say: printer.notice });
  for (const change of changed?.changes ?? []) printer.notice(`  ${changeText(change)}`);
  await ensureFences(home, store);
  // Until the fork's own record of what it reads is there.
  const unpin = await pinPosition(
    found.log,
    { position: origin.position, why: 'a fork', forMs: pinnedMs },
    () => new Date(),
  );
  const fork = await createFork(found, origin, revision, changed, now);
  await unpin();
  rememberStore(home, store.url);
  noteDrivenRun(home, { runId: fork.runId, store: store.url, kind: fork.record.kind });
  const driver = await driverAfterUp(fork, home, printer);
  try {
    const entry = await fork.log.status();
    await driver.start(false);
    const answer = { runId: fork.runId, origin: found.runId, iteration: origin.position };
    if (!flag(input, 'wait') || entry === undefined) {
      printer.data(
        answer,
        () =>
          `${fork.runId} begins with the state of ${found.runId} after iteration ${origin.position}\nnext: petrel status ${fork.runId} --watch`,
      );
      return EXIT.ok;
    }
    printer.notice(`${fork.runId} begins with the state of ${found.runId} after iteration ${origin.position}`);
    const state = (await waitForEnd(fork.log, entry, driver.ended())) ?? 'running';
    printer.data(
      { ...answer, iteration: (await fork.log.head())?.position ?? origin.position, state },
      () => `${fork.runId} is ${state}`,
    );
    return exitCodeOfState(state);
  } finally {
    await driver.close();
  }
}
