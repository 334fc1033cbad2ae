/**
 * Tests by what they cost. `unit`: beside the files they test, quick. `component`: the same, with the engine or with
 * processes. `contract`: suites that every implementation of a port passes. `integration`: real servers and processes, two
 * files at a time, each in a home of its own. `alone`: files that need the machine for themselves.
 */
import { defineConfig } from 'vitest/config';

const always = ['node_modules/**', 'dist/**', 'build/**'];
const withEngineOrProcesses = ['native/**/*.test.ts', 'rewards/host/**/*.test.ts', 'workers/engine/**/*.test.ts'];
const withServers = ['infra/stack/**/*.test.ts', 'tests/**/*.test.ts'];
const contracts = ['**/contracts/**/*.test.ts'];
const alone = [
  'tests/bench.test.ts',
  'tests/recovery/**/*.test.ts',
  'tests/threads.test.ts',
  'tests/integration/full-disk.test.ts',
];

/** Two processes share the two cores of the smallest machine. */
const workers = 2;

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: workers,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['**/*.test.ts'],
          exclude: [...always, ...withEngineOrProcesses, ...withServers, ...contracts],
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'component',
          include: withEngineOrProcesses,
          exclude: [...always, ...contracts],
          sequence: { groupOrder: 1 },
        },
      },
      { extends: true, test: { name: 'contract', include: contracts, exclude: always, sequence: { groupOrder: 2 } } },
      {
        extends: true,
        test: {
          name: 'integration',
          include: withServers,
          exclude: [...always, ...contracts, ...alone],
          sequence: { groupOrder: 3 },
        },
      },
      {
        extends: true,
        test: { name: 'alone', include: alone, exclude: always, fileParallelism: false, sequence: { groupOrder: 4 } },
      },
    ],
  },
});
