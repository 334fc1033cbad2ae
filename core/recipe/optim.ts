import { z } from 'zod';
import { count, fraction, key, section } from './key.ts';

/** AdamW and its learning-rate schedule; shared by every trained role. */
export function optimSection(lr: { readonly rl: number; readonly sft: number }) {
  return section('AdamW and its learning-rate schedule.', {
    lr: key(z.number().positive(), lr.rl, { doc: 'Peak learning rate.', change: 'ask', sftDefault: lr.sft }),
    betas: key(z.tuple([fraction, fraction]), [0.9, 0.999], {
      doc: 'Decay rates of the first and second moments.',
      change: 'ask',
    }),
    eps: key(z.number().positive(), 1e-8, { doc: 'Added to the square root of the second moment.', change: 'ask' }),
    weight_decay: key(z.number().nonnegative(), 0.01, { doc: 'Decoupled weight decay.', change: 'ask' }),
    lr_warmup_steps: key(z.int().min(-1), -1, {
      doc: 'Optimiser steps of linear warm-up; -1: from lr_warmup_steps_ratio.',
      unit: 'optimiser steps',
      change: 'ask',
    }),
    lr_warmup_steps_ratio: key(fraction, 0, { doc: 'Warm-up as a share of all optimiser steps.', change: 'ask' }),
    lr_scheduler_type: key(z.enum(['constant', 'cosine', 'wsd']), 'constant', {
      doc: 'How the learning rate changes after the warm-up (wsd: it stays constant, then decays).',
      change: 'ask',
    }),
    min_lr_ratio: key(fraction, 0, { doc: 'Lowest learning rate, as a share of lr.', change: 'ask' }),
    init_lr_ratio: key(fraction.nullable(), null, {
      doc: 'Learning rate at the start of the warm-up, as a share of lr; null: 0.',
      change: 'ask',
    }),
    num_cycles: key(z.number().positive(), 0.5, {
      doc: 'Number of cosine waves over the run; 0.5: the rate falls once.',
      change: 'ask',
    }),
    stable_ratio: key(fraction, 0.9, {
      doc: 'wsd: share of the steps after the warm-up that have the full rate.',
      change: 'ask',
    }),
    zero_indexed_step: key(z.boolean(), true, {
      doc: 'cosine: count steps from 0, so that a warm-up begins at rate 0.',
      change: 'ask',
    }),
    total_training_steps: key(count.nullable(), null, {
      doc: 'Length of the schedule; null: all optimiser steps of the run.',
      unit: 'optimiser steps',
      change: 'ask',
    }),
  });
}
