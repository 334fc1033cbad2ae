/**
 * Tests by what they cost: `unit` beside the files they test; `contract` suites that every implementation of a port
 * passes; `integration` with real servers and processes, one file after the other.
 */
import { defineConfig } from 'vitest/config';

const always = ['node_modules/**', 'dist/**', 'build/**'];
const withServers = ['infra/stack/**/*.test.ts', 'tests/**/*.test.ts'];
const contracts = ['**/contracts/**/*.test.ts'];

export default defineConfig({
  test: {
    pool: 'forks',
    testTimeout: 120_000,
    hookTimeout: 120_000,
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['**/*.test.ts'],
          exclude: [...always, ...withServers, ...contracts],
          sequence: { groupOrder: 0 },
        },
      },
      { extends: true, test: { name: 'contract', include: contracts, exclude: always, sequence: { groupOrder: 1 } } },
      {
        extends: true,
        test: {
          name: 'integration',
          include: withServers,
          exclude: [...always, ...contracts],
          fileParallelism: false,
          maxWorkers: 1,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
