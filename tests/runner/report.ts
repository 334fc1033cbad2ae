/** What is printed after the tests: the slowest files, the sum of each project, and how many tests passed. */
import type { TestCase, TestModule } from 'vitest/node';
import type { FileDuration } from './durations.ts';
import { longestFirst } from './schedule.ts';

export interface Count {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

/** What a file took: its imports, hooks and tests. */
export function durationOf(module: TestModule): FileDuration {
  const { environmentSetupDuration, prepareDuration, collectDuration, setupDuration, duration } = module.diagnostic();
  const milliseconds = environmentSetupDuration + prepareDuration + collectDuration + setupDuration + duration;
  return { project: module.project.name, path: module.relativeModuleId, seconds: milliseconds / 1_000 };
}

export function durationLines(files: readonly FileDuration[]): string[] {
  const slowest = longestFirst(files, ({ seconds }) => seconds).slice(0, 20);
  const projects = [...new Set(files.map(({ project }) => project))];
  return [
    'slowest files:',
    ...slowest.map(({ project, path, seconds }) => `${inSeconds(seconds)}  ${project} ${path}`),
    'sum of each project:',
    ...projects.map((project) =>
      sumLine(
        project,
        files.filter((file) => file.project === project),
      ),
    ),
  ];
}

/** Counts the tests that were chosen, and errors that belong to no test. */
export function countTests(
  modules: readonly TestModule[],
  isChosen: (test: TestCase) => boolean,
  errorsOutside: number,
): Count {
  const count = { passed: 0, failed: errorsOutside, skipped: 0 };
  for (const module of modules) {
    const states = [...module.children.allTests()].filter(isChosen).map((test) => outcome(test.result().state));
    for (const state of states) count[state]++;
    // A file that cannot be imported, or a hook that throws, fails without a failed test.
    if (module.state() === 'failed' && !states.includes('failed')) count.failed++;
  }
  return count;
}

export function lastLine({ passed, failed, skipped }: Count): string {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

/** A test that is still pending was interrupted, which is not a success. */
function outcome(state: string): keyof Count {
  return state === 'passed' || state === 'skipped' ? state : 'failed';
}

function sumLine(project: string, files: readonly FileDuration[]): string {
  const sum = files.reduce((total, { seconds }) => total + seconds, 0);
  return `${inSeconds(sum)}  ${project}, ${files.length} files`;
}

const inSeconds = (seconds: number) => `${seconds.toFixed(1).padStart(8)} s`;
