/**
 * Hostile programs do not take more memory of the machine than their limit, whatever it belongs to. What is looked at
 * is the machine's free memory, not the process.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { SandboxLimits } from './limits.ts';
import { memoryEaters } from './memory-eaters.test-support.ts';
import { testPlaces } from './places.test-support.ts';
import { runInSandbox } from './run.ts';
import type { Walls } from './walls.ts';

/** Open files as a program of the model has them. */
const limits: SandboxLimits = {
  wallMs: 6_000,
  cpuMs: 20_000,
  memoryMb: 128,
  tasks: 24,
  outputBytes: 100_000,
  diskMb: 32,
  openFiles: 256,
};
/**
 * What a program takes between two looks of the guard, and what is bounded by a number of its own:
 * docs/do/untrusted-code.md.
 */
const slackMb = 256;
/** Other programs of the machine take memory, too, but not each time. */
const tries = 4;
const sampleMs = 10;
const places = testPlaces().flatMap(({ name, place }) => [
  { name, python: place.python, walls: { ...place.walls, cgroups: undefined } },
  ...(place.walls.cgroups === undefined
    ? []
    : [{ name: `${name}, with cgroups`, python: place.python, walls: place.walls }]),
]);

it.skipIf(places.length > 0)('programs are not run here, because no sandbox works', () => {
  expect(testPlaces()).toEqual([]);
});

describe.skipIf(places.length === 0).each(places)('run by $name, a program', ({ walls, python }) => {
  it.each(memoryEaters)('that takes $takes is bounded', async ({ code }) => {
    const taken: number[] = [];
    while (taken.length < tries && (taken.at(-1) ?? Infinity) > limits.memoryMb + slackMb)
      taken.push(await takenBy(walls, python, code));
    expect(Math.min(...taken), `MiB in ${taken.length} runs: ${taken.join(', ')}`).toBeLessThan(
      limits.memoryMb + slackMb,
    );
  });
});

/** The most MiB of the machine that were gone while the program ran. */
async function takenBy(walls: Walls, python: (typeof places)[number]['python'], code: string): Promise<number> {
  const before = freeMb();
  let least = before;
  const sample = () => {
    least = Math.min(least, freeMb());
  };
  const timer = setInterval(sample, sampleMs);
  try {
    const { end, stderr } = await runInSandbox(walls, {
      command: [python.program, '-s', '-B', '-c', code],
      stdin: '',
      env: { HOME: '/tmp' },
      binds: python.binds,
      limits,
      onStdout: () => {
        sample();
        return 'stop';
      },
    });
    expect(end.type, stderr).toMatch(/stopped|limit|exit|signal/);
    return Math.round(before - least);
  } finally {
    clearInterval(timer);
  }
}

function freeMb(): number {
  const text = readFileSync('/proc/meminfo', 'utf8');
  return Number(/^MemAvailable:\s+(\d+)/m.exec(text)?.[1]) / 1024;
}
