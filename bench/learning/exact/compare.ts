/** Compares both sides of every comparison. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BatchTensors } from '../../../models/batch-tensors.ts';
import { decodeSafetensors } from '../../../models/safetensors.ts';
import { peerLines } from '../python.ts';
import { BATCHES } from './batches.ts';
import type { RecordedBatch } from './batches.ts';
import { comparisons, settingsFor, trlLossType } from './comparisons.ts';
import type { Comparison } from './comparisons.ts';
import { petrelSide } from './petrel-side.ts';
import type { LossAndGradient } from './petrel-side.ts';
import { record } from './recorded.ts';
import type { Recorded } from './recorded.ts';
import { relativeDistance } from './relative-distance.ts';

/** A difference is at most this share of the other side's norm. */
const tolerance = 1e-4;

/** A loss that is so small beside its terms is 0 but for rounding: RLOO's where all ratios are 1. */
const cancelled = 1e-6;

export interface Compared {
  readonly batch: string;
  readonly comparison: Comparison;
  readonly responses: number;
  readonly tokens: number;
  /** Smallest and largest probability ratio; undefined for values. */
  readonly ratios: readonly [number, number] | undefined;
  readonly loss: number;
  /** |difference| / |other side's loss|; where the loss is 0 but for rounding, / the mean of |advantages|. */
  readonly lossDifference: number;
  /** ‖difference‖ / ‖other side's gradient‖ over all parameters. */
  readonly gradientDifference: number;
  readonly passed: boolean;
}

interface Task {
  readonly recorded: Recorded;
  readonly comparison: Comparison;
  readonly ours: LossAndGradient;
}

interface Answer {
  readonly loss: number;
  readonly ratios: readonly [number, number] | null;
  readonly gradients: string;
}

export interface ExactRequest {
  readonly home: string;
  readonly python: string;
  readonly threads: number;
  /** Default: all ten. */
  readonly batches?: readonly RecordedBatch[];
  readonly say: (text: string) => void;
  readonly onCompared: (compared: Compared) => void;
}

/** Needs the stack of `home`. Returns the versions of the other side. */
export async function compareAll({ home, python, threads, batches = BATCHES, say, onCompared }: ExactRequest) {
  const place = mkdtempSync(join(tmpdir(), 'petrel-learning-'));
  try {
    const tasks: Task[] = [];
    for (const [i, batch] of batches.entries()) {
      const recorded = await record(home, batch, join(place, String(i)));
      say(`recorded: ${batch.name}`);
      for (const comparison of comparisons) {
        const ours = await petrelSide(recorded, comparison);
        if (ours !== undefined) tasks.push({ recorded, comparison, ours });
      }
      await recorded.actor.policy.close();
      await recorded.critic?.policy.close();
    }
    let about = '';
    let next = 0;
    for await (const line of peerLines(python, 'trl_losses.py', { threads, tasks: tasks.map(taskOf) })) {
      const task = tasks[next];
      if (task === undefined || 'about' in (line as object)) {
        about = (line as { readonly about: string }).about;
        continue;
      }
      onCompared(compared(task, line as Answer));
      next += 1;
    }
    return about;
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/** What the script reads. */
function taskOf({ recorded, comparison }: Task) {
  const { critic, actor, micros, folder } = recorded;
  const loss = settingsFor(comparison, comparison === 'value' && critic ? critic.loss : actor.loss);
  return {
    folder,
    comparison,
    samples: micros.flatMap((samples) => [...samples]),
    loss: {
      temperature: loss.temperature,
      aggregation: loss.lossAggMode,
      width: loss.lossScaleFactor,
      clip_low: loss.clipRatioLow,
      clip_high: loss.clipRatioHigh,
      dual_clip: loss.clipRatioC,
      entropy_coef: loss.entropyCoeff,
      kl_coef: loss.useKlLoss ? loss.klLossCoef : 0,
      value_clip: loss.constants?.['cliprangeValue'] ?? null,
      ...(comparison === 'grpo' && { trl_loss_type: trlLossType(loss.lossAggMode) }),
    },
  };
}

function compared({ recorded, comparison, ours }: Task, answer: Answer): Compared {
  const samples = recorded.micros.flatMap((all) => [...all]);
  const { scoredOffsets_S1 } = recorded.batch;
  const tokens = samples.reduce((sum, b) => sum + Number(scoredOffsets_S1[b + 1]) - Number(scoredOffsets_S1[b]), 0);
  const terms = meanAdvantage(recorded.batch, samples);
  const scale = Math.abs(answer.loss) < cancelled * terms ? terms : Math.abs(answer.loss);
  const lossDifference = Math.abs(ours.loss - answer.loss) / scale;
  const gradientDifference = relativeDistance(ours.gradients, gradientsOf(answer.gradients));
  return {
    batch: recorded.name,
    comparison,
    responses: samples.length,
    tokens,
    ratios: answer.ratios ?? undefined,
    loss: answer.loss,
    lossDifference,
    gradientDifference,
    passed: lossDifference <= tolerance && gradientDifference <= tolerance,
  };
}

/** Mean of the absolute values. */
function meanAdvantage({ advantages_T, scoredOffsets_S1 }: BatchTensors, samples: readonly number[]): number {
  let [sum, tokens] = [0, 0];
  for (const b of samples) {
    const own = advantages_T.subarray(scoredOffsets_S1[b], scoredOffsets_S1[b + 1]);
    sum += own.reduce((total, advantage) => total + Math.abs(advantage), 0);
    tokens += own.length;
  }
  return sum / tokens;
}

function gradientsOf(path: string): Map<string, Float32Array> {
  const { tensors } = decodeSafetensors(readFileSync(path), path);
  return new Map([...tensors].map(([name, { data }]) => [name, data as Float32Array]));
}
