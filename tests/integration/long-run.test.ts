// @module-tag long
/** Runs of many iterations: their histories stay small, and they continue as new without loss. */
import { WorkflowNotFoundError } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DesiredState } from '../../core/run-states.ts';
import { desiredStateSignal } from '../../core/wire/workflow.ts';
import { stopStack } from '../../infra/stack/index.ts';
import { historyPerIteration } from '../history-size.ts';
import { LoopUnderTest } from '../loop-under-test.ts';
import type { StartedRun } from '../loop-under-test.ts';

const limitBytes = 12 * 1024;
const iterations = 80;
/** Fewer iterations than one execution of the workflow drives, so that it never continues as new. */
const undisturbedIterations = 45;
const loop = new LoopUnderTest();
beforeAll(() => loop.up());
afterAll(async () => {
  delete process.env['PETREL_TEMPORAL_SETTINGS'];
  await loop.remove();
});

const recipe = (total: number) => ({
  data: { train_batch_size: 2, val_files: loop.validationFile },
  rollout: { n: 2 },
  actor: { ppo_mini_batch_size: 2 },
  trainer: { test_freq: 5, save_freq: 4, total_training_steps: total },
});

describe('the history of an iteration', () => {
  it('is small, and does not grow with the number of prompts', async () => {
    const measured = [];
    for (const prompts of [4, 1024]) {
      const run = await loop.start({
        data: { train_batch_size: prompts, max_response_length: 2, val_files: loop.validationFile },
        rollout: { n: 2, max_num_seqs: 256 },
        actor: { ppo_mini_batch_size: prompts, ppo_max_token_len_per_gpu: 2048 },
        trainer: { total_training_steps: 5, test_freq: 2, save_freq: 2 },
      });
      await loop.reaches(run, 'completed');
      await loop.ended(run);
      const size = await historyPerIteration(loop.client, run.runId);
      const { events, encodedBytes, jsonBytes, largestEvent } = size;
      console.log(
        `history at ${prompts} prompts: ${events} events, ${encodedBytes} bytes per iteration as Temporal counts, ${jsonBytes} as JSON; largest event ${largestEvent}`,
      );
      measured.push(size);
    }
    const [few, many] = measured;
    expect(many?.encodedBytes).toBeLessThanOrEqual(limitBytes);
    expect(many?.jsonBytes).toBeLessThanOrEqual(limitBytes);
    // The difference allows for the digits of a count.
    expect((many?.largestEvent ?? 0) - (few?.largestEvent ?? 0)).toBeLessThanOrEqual(8);
  });
});

describe(`a run of ${iterations} iterations that continues as new every few of them (seed 42)`, () => {
  let run: StartedRun;
  let undisturbed: string[];
  const executions = new Set<string>();
  const execution = async () => {
    const { runId } = await loop.client.workflow.getHandle(run.runId).describe();
    executions.add(runId);
    return runId;
  };

  beforeAll(async () => {
    const plain = await loop.start(recipe(undisturbedIterations));
    await loop.reaches(plain, 'completed');
    await loop.ended(plain);
    const history = await loop.client.workflow.getHandle(plain.runId).fetchHistory();
    expect(history.events?.at(-1)?.workflowExecutionCompletedEventAttributes).toBeTruthy();
    expect(history.events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId).toBeFalsy();
    undisturbed = await loop.states(plain);

    await stopStack(loop.home);
    process.env['PETREL_TEMPORAL_SETTINGS'] = 'limit.historyCount.suggestContinueAsNew=200';
    await loop.up();
    run = await loop.start(recipe(iterations));
  });

  it('obeys every desired state, also one that is set while it continues as new', async () => {
    const pump = signals();
    for (let boundary = 0; boundary < 4; boundary++) {
      const before = await execution();
      // The signal arrives shortly before the workflow continues as new, during it, or just after.
      await loop.passes(run, ((await run.log.head())?.position ?? 0) + 4 + (boundary % 2));
      await loop.tell(run, 'pause');
      await loop.reaches(run, 'paused');
      await loop.tell(run, 'run');
      await loop.until(
        run,
        'its next execution',
        async () => (await execution()) !== before || (await run.log.status.newest())?.state === 'completed',
      );
    }
    await pump.stop();
    await loop.reaches(run, 'completed');
    expect(await loop.ended(run)).toEqual({ state: 'completed', position: iterations });
    await execution();
    expect(pump.sent()).toBeGreaterThan(50);
    expect(executions.size).toBeGreaterThan(4);
    console.log(
      `${executions.size} executions seen, ${pump.sent()} signals, ${await refusedEnds()} ends refused because one had come in`,
    );
  });

  it('has the states of a run that never continues', async () => {
    const states = await loop.states(run);
    expect(states).toHaveLength(iterations);
    expect(states.slice(0, undisturbedIterations)).toEqual(undisturbed);
  });

  it('validates and saves when due', async () => {
    const every = (n: number, from: number) =>
      Array.from({ length: iterations }, (_, i) => i + 1).filter((k) => k % n === 0 && k >= from);
    expect((await run.log.evaluations.all()).map(({ iteration }) => iteration)).toEqual(every(5, 1));
    expect((await run.log.checkpoints.all()).map(({ record }) => record.iteration).reverse()).toEqual(every(4, 1));
  });

  it('is one run for every client: its newest execution names the previous one', async () => {
    const history = await loop.client.workflow.getHandle(run.runId).fetchHistory();
    const started = history.events?.[0]?.workflowExecutionStartedEventAttributes;
    expect(started?.continuedExecutionRunId).toBeTruthy();
    expect(Number(started?.workflowTaskTimeout?.seconds)).toBe(2);
    expect((await loop.statuses(run)).at(-1)).toBe('completed');
  });

  /** How often a workflow task was repeated because a signal arrived while it ran. */
  async function refusedEnds(): Promise<number> {
    const histories = await Promise.all(
      [...executions].map((id) => loop.client.workflow.getHandle(run.runId, id).fetchHistory()),
    );
    return histories.flatMap(({ events }) => events ?? []).filter((event) => event.workflowTaskFailedEventAttributes)
      .length;
  }

  /**
   * Sends a signal every few milliseconds, so that some arrive while the workflow ends its execution. The signals carry
   * the present desired state.
   */
  function signals() {
    let sent = 0;
    let running = true;
    const sending = (async () => {
      while (running) {
        const desired: DesiredState = (await run.log.status.newest())?.wish ?? 'run';
        await loop.client.workflow
          .getHandle(run.runId)
          .signal(desiredStateSignal, desired)
          .catch((error: unknown) => {
            // On a machine that answers no task for seconds, the control process puts another one in its place.
            if (!(error instanceof WorkflowNotFoundError)) throw error;
          });
        sent += 1;
      }
    })();
    return {
      sent: () => sent,
      stop: () => {
        running = false;
        return sending;
      },
    };
  }
});
