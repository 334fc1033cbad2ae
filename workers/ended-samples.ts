/** The rollout worker's side of scoring ahead: it tells one reward worker of the samples of a job that have ended. */
import { endedSamplesSubject, mostTokensTold } from '../core/wire/ended-samples.ts';
import type { EndedSamples } from '../core/wire/ended-samples.ts';
import { wireVersion } from '../core/wire/messages.ts';
import type { JobMessage } from '../core/wire/messages.ts';
import type { EndedSample } from './engine/job/context.ts';
import { tokensText } from './reward/ahead-samples.ts';

export interface EndedSamplesPorts {
  /** The worker to tell, `identityText`; undefined: none. */
  readonly scorer: string | undefined;
  readonly publish: (subject: string, text: string) => void;
}

/** Tells of the ended samples of one rollout job. */
export function tellOfSamples(job: JobMessage, ports: EndedSamplesPorts): (samples: readonly EndedSample[]) => void {
  const { scoring, runId, store, jobId } = job;
  const { scorer } = ports;
  if (scoring === undefined || scorer === undefined) return () => {};
  return (samples) => {
    for (const some of piecesOf(samples)) {
      const told = some.map(({ tokens, ...sample }) => ({ ...sample, tokens: tokensText(tokens) }));
      const message: EndedSamples = { v: wireVersion, runId, store, jobId, samples: told, scoring };
      ports.publish(endedSamplesSubject(scorer), JSON.stringify(message));
    }
  };
}

/** Cuts the samples into pieces, each with as many as fit into one message. */
function piecesOf(samples: readonly EndedSample[]): EndedSample[][] {
  const pieces: EndedSample[][] = [];
  let room = 0;
  for (const sample of samples) {
    const { length } = sample.tokens;
    if (length > mostTokensTold) continue;
    if (length > room || pieces.length === 0) {
      pieces.push([]);
      room = mostTokensTold;
    }
    pieces.at(-1)?.push(sample);
    room -= length;
  }
  return pieces;
}
