/** Which stack may drive a run: the one that opened its newest term, unless that term is closed. */
import { FencedError } from '../../core/errors.ts';
import type { TermRecord } from '../../core/records/schema.ts';
import type { Head } from '../../log/run/run-log.ts';

/** Throws FencedError with the driving stack's name, unless that is `owner`. */
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
