/** Who may go on with a run: the stack that opened its newest term, as long as nobody has closed it. */
import { FencedError } from '../core/errors.ts';
import type { TermRecord } from '../core/records/schema.ts';
import type { Head } from '../infra/store/run-log.ts';

/** Throws FencedError that names who drives the run, unless it is `owner`. */
export function refuseForeign(head: Head | undefined, owner: string, runId: string): void {
  if (head === undefined) return;
  if (head.termRecord.owner !== owner) throw drivenBy(head.termRecord, owner);
  if (head.seal === undefined) return;
  const { owner: by, reason } = head.seal.record;
  throw new FencedError(`${by} closed term ${head.term} of ${runId} (${reason}) and opened no new one yet`, {
    where: runId,
    hint: `petrel resume ${runId} opens it`,
  });
}

export function drivenBy({ runId, term, owner, reason, writer }: TermRecord, us: string): FencedError {
  return new FencedError(`${runId} is driven by ${owner} since ${writer.at} (term ${term}: ${reason}), not by ${us}`, {
    where: runId,
    hint: `petrel status ${runId} shows where it is; petrel resume ${runId} --accept takes it over`,
  });
}
