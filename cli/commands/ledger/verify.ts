/** `petrel ledger verify <run>`: exit 1 when anything is not as it must be. */
import { keys } from '../../../core/records/keys.ts';
import type { Store } from '../../../core/ports/store.ts';
import { runNameOf } from '../../../core/ids.ts';
import type { CommandContext, CommandInput } from '../../command.ts';
import { EXIT, type ExitCode } from '../../exit-codes.ts';
import { ledgerText } from '../../ledger/verdict-text.ts';
import { findRun, listRunIds, openKnownStores, verifyLedger } from '../../../api/index.ts';
import type { ListedRun } from '../../../api/index.ts';
import { flag, word } from '../../options.ts';

export async function run(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { printer } = context;
  const { runId, store } = await findLedger(word(input, 0), context);
  const say = (text: string) => (printer.json ? undefined : printer.notice(text));
  const verdict = await verifyLedger(store, runId, { deep: flag(input, 'deep'), say });
  printer.data(verdict, () => ledgerText(verdict, printer));
  return verdict.ok ? EXIT.ok : EXIT.internal;
}

/** Finds the ledger as any command finds its run, and also a run whose first record is damaged. */
async function findLedger(
  name: string,
  context: CommandContext,
): Promise<{ readonly runId: string; readonly store: Store }> {
  try {
    const { runId, log } = await findRun(name, context);
    return { runId, store: log.store };
  } catch (error) {
    const stores = await openKnownStores(context.home, () => {});
    for (const one of await listRunIds(stores))
      if ((one.runId === name || runNameOf(one.runId) === name) && !(await isRemoved(one))) return one;
    throw error;
  }
}

const isRemoved = async ({ store, runId }: ListedRun) => (await store.head(keys.tombstone(runId))) !== undefined;
