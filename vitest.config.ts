/**
 * `npm test` runs every test but those with the tag `long`, which `npm run test:long` runs: files whose first line is
 * `@module-tag long`, and tests with `tags: ['long']`. A test is long when it repeats with other seeds, places, servers
 * or damages what a quicker one shows once (a kill in each stage, a power cut at each call), or when one thing takes
 * minutes, or when it needs what a laptop does not have: several control machines, another processor or build, servers
 * of others. So `npm test` keeps each unit, each contract of a port, and one test for each thing that a stack does on a
 * laptop. Files whose first line is `@module-tag engines` need torch, which `npm run test:engines` installs.
 *
 * Projects are by cost. `unit`: beside the files they test, quick. `component`: the same, with the engine or with
 * processes. `contract`: suites that every implementation of a port passes. `integration`: real servers and processes,
 * each file in a separate home. `recovery`: runs under faults. `tiles`: the engine's products for AMX, all long.
 * `alone`: files that need the whole machine.
 */
import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { ByDuration } from './tests/runner/sequencer.ts';

const always = ['node_modules/**', 'dist/**', 'build/**'];
const withEngineOrProcesses = [
  'native',
  'rewards/{host,sandbox}',
  'workers/engine',
  'infra/own-modules',
  'api/scorer-files',
  'infra/onnx',
  'rewards/code',
].map((folder) => `${folder}/**/*.test.ts`);
const withServers = ['infra/stack/**/*.test.ts', 'tests/*.test.ts', 'tests/!(runner)/**/*.test.ts'];
const contracts = ['**/contracts/**/*.test.ts'];
const recovery = ['tests/recovery/**/*.test.ts', 'tests/integration/full-disk.test.ts'];
const alone = ['tests/threads.test.ts'];

/**
 * One group, so that no core waits at the end of a project. Files with servers often wait: four keep two cores busy.
 */
const sideBySide = { maxWorkers: 4, sequence: { groupOrder: 1 } };

/** Milliseconds after which a test hangs. */
const hangs = 1_800_000;

/**
 * Processors without AMX run its products on tiles in memory, if they have the instructions for bf16 (native/RULES.md).
 */
const flags = readFileSync('/proc/cpuinfo', 'utf8');
const emulatesTiles = /\bavx512_bf16\b/.test(flags) && !/\bamx_bf16\b/.test(flags);

export default defineConfig({
  test: {
    pool: 'forks',
    sequence: { sequencer: ByDuration },
    maxWorkers: 2,
    tags: [
      { name: 'long', description: 'runs in npm run test:long, not in npm test' },
      { name: 'engines', description: 'needs an engine that users install: runs in npm run test:engines' },
    ],
    // Guards against a test that never ends, longer than a wait in it may last (tests/patience.ts). No test has its
    // own.
    testTimeout: hangs,
    hookTimeout: hangs,
    expect: { poll: { timeout: 600_000 } },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['**/*.test.ts'],
          exclude: [...always, ...withEngineOrProcesses, ...withServers, ...contracts],
          // One load of the modules for all files takes half the processor time. They share nothing else.
          isolate: false,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'component',
          include: withEngineOrProcesses,
          exclude: [...always, ...contracts],
          // 134 instead of 153 seconds of a processor for 70 files.
          isolate: false,
          ...sideBySide,
        },
      },
      ...(emulatesTiles
        ? [
            {
              extends: true as const,
              test: {
                name: 'tiles',
                include: ['native/{bf16,determinism,gradients,generate,shared-prompts}.test.ts'],
                env: { PETREL_ISA: 'amx', PETREL_TILES: 'emulated' },
                ...sideBySide,
              },
            },
          ]
        : []),
      { extends: true, test: { name: 'contract', include: contracts, exclude: always, ...sideBySide } },
      {
        extends: true,
        test: {
          name: 'integration',
          include: withServers,
          exclude: [...always, ...contracts, ...recovery, ...alone],
          ...sideBySide,
        },
      },
      { extends: true, test: { name: 'recovery', include: recovery, exclude: always, ...sideBySide } },
      {
        extends: true,
        test: { name: 'alone', include: alone, exclude: always, fileParallelism: false, sequence: { groupOrder: 2 } },
      },
    ],
  },
});
