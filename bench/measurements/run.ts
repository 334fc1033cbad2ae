/**
 * A short run of the quickstart on a private stack: how long the stages of an iteration take, how much time is left for
 * orchestration, how long the minimal loop takes on the same servers, and how long event loops were blocked.
 */
import { join } from 'node:path';
import { bareLoopMs } from '../bare/loop.ts';
import { median } from '../clock.ts';
import type { BenchSettings, Measurement, Session, Values } from '../measurement.ts';
import { ensureStack } from '../../infra/stack/index.ts';
import { iterationTimes, stages } from '../run/iterations.ts';
import type { IterationTimes } from '../run/iterations.ts';
import { controlLoopDelay, workerLoopDelay } from '../run/loop-delays.ts';
import { privateHome } from '../run/private-home.ts';
import { runExample } from '../run/start.ts';

/** Iterations at the start that do not count, because engines are created and caches filled. */
const warmUp = 3;

export const arithmeticRun: Measurement = {
  name: 'run',
  rows: [
    ...stages.map((stage) => ({ name: `iteration.${stage}`, unit: 's' }) as const),
    { name: 'iteration.total', unit: 's' },
    { name: 'orchestration.median', unit: 'ms' },
    { name: 'orchestration.bare', unit: 'ms' },
    { name: 'eventloop.p999.control', unit: 'ms' },
    { name: 'eventloop.p999.worker', unit: 'ms' },
  ],
  turns: 1,
  compare: { 'orchestration.median': 'orchestration.bare' },
  open,
};

async function open({ quick, threads }: BenchSettings): Promise<Session> {
  const { home, remove } = privateHome();
  const iterations = warmUp + (quick ? 2 : 30);
  return {
    about: `${iterations} iterations of the quickstart`,
    async turn(): Promise<Values> {
      const stack = await ensureStack({
        home,
        workers: [{ name: 'local', count: 1, roles: ['trainer', 'rollout', 'reward'], threads }],
      });
      const times = await iterationTimes(await runExample(home, '01-arithmetic-grpo', iterations), warmUp);
      const bare = await bareLoopMs(stack, join(home, 'bare'), iterations);
      const worker = await workerLoopDelay(stack);
      return {
        ...iterationValues(times),
        'orchestration.median': median(times.map(({ idleMs }) => idleMs)),
        'orchestration.bare': median(bare),
        'eventloop.p999.worker': worker,
        'eventloop.p999.control': await controlLoopDelay(home),
      };
    },
    close: remove,
  };
}

function iterationValues(times: readonly IterationTimes[]): Values {
  const ofStages = stages.map((stage) => [
    `iteration.${stage}`,
    median(times.map(({ stageMs }) => stageMs[stage])) / 1000,
  ]);
  return { ...Object.fromEntries(ofStages), 'iteration.total': median(times.map(({ wallMs }) => wallMs)) / 1000 };
}
