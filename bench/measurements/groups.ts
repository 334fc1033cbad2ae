/**
 * Tokens per second of a training step of prompts with several responses each. A prompt counts once for each response,
 * however often it is computed.
 */
import { secondsOf } from '../clock.ts';
import type { Measurement } from '../measurement.ts';
import { groupsOf, sizeOf } from '../sizes.ts';
import type { Groups, SizeName } from '../sizes.ts';
import { stepOfGroups, TrainingStep } from '../training-step.ts';

export function groupsThroughput(size: SizeName): Measurement {
  const name = `train.${size}.groups`;
  return {
    name,
    rows: [{ name, unit: 'tokens/s' }],
    turns: 3,
    async open(settings) {
      const groups = groupsOf(settings.quick);
      const step = new TrainingStep(sizeOf(size, settings.quick), settings, stepOfGroups(groups));
      step.take();
      return {
        about: `${groups.prompts} prompts with ${groups.responses} responses, ${step.tokens} tokens a step`,
        turn: async () => ({ [name]: step.tokens / secondsOf(() => step.take()) }),
        close: async () => step.close(),
      };
    },
    peer: ({ quick }) => ({ work: 'train', row: name, ...sizeOf(size, quick), ...peerGroups(groupsOf(quick)) }),
  };
}

const peerGroups = ({ prompts, responses, promptTokens, responseTokens, sequencesPerPass }: Groups) => ({
  batch: prompts * responses,
  length: promptTokens + responseTokens,
  responses,
  prompt_tokens: promptTokens,
  sequences_per_pass: sequencesPerPass,
});
