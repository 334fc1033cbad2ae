/** Gets weights from processes that have them in memory. core/wire/weights.ts says how they are asked. */
import { request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { ByteSink } from '../../core/byte-sink.ts';
import { weightsPath } from '../../core/wire/weights.ts';
import { messageProof } from '../../infra/store/result-proof.ts';

export interface AskedWeights {
  readonly runId: string;
  readonly weights: string;
  readonly secret: string;
  readonly elements: number;
}

/** A holder that sends nothing for so long is left. It may wait itself for the one that it gets them from. */
const silentMs = 10_000;
/** A holder must be faster than this, in bytes per second, after `silentMs`. */
const slowest = 1_000_000;

/**
 * Writes the fp32 values of all elements to the sink, in order, and resolves with true. Each holder goes on where the one before
 * has ended; false when the last of them has not sent everything.
 */
export async function readFromHolders(
  holders: readonly string[],
  asked: AskedWeights,
  sink: ByteSink,
): Promise<boolean> {
  const bytes = asked.elements * Float32Array.BYTES_PER_ELEMENT;
  let done = 0;
  for (const holder of holders) {
    // A value that has come in part is asked for again: what is behind the last whole one is dropped.
    let skip = done % Float32Array.BYTES_PER_ELEMENT;
    try {
      const began = performance.now();
      let got = 0;
      for await (const piece of await answerOf(holder, asked, Math.floor(done / Float32Array.BYTES_PER_ELEMENT))) {
        const fresh = piece.subarray(Math.min(skip, piece.byteLength));
        skip -= piece.byteLength - fresh.byteLength;
        if (done + fresh.byteLength > bytes) return false;
        await sink(fresh);
        done += fresh.byteLength;
        got += fresh.byteLength;
        const ms = performance.now() - began;
        if (ms > silentMs && got < (slowest * ms) / 1_000) break;
      }
    } catch {
      continue; // the next one, or the store
    }
    if (done === bytes) return true;
  }
  return false;
}

async function answerOf(holder: string, asked: AskedWeights, first: number): Promise<AsyncIterable<Buffer>> {
  const path = weightsPath(asked.runId, asked.weights, first);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const asking = request(
      new URL(path, holder),
      { headers: { authorization: messageProof(asked.secret, path) }, agent: false, timeout: silentMs },
      resolve,
    );
    asking.on('timeout', () => asking.destroy(new Error(`${holder} is silent`)));
    asking.on('error', reject);
    asking.end();
  });
  if (answer.statusCode === 200) return answer;
  answer.destroy();
  throw new Error(`${holder} answered ${answer.statusCode}`);
}
