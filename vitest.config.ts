/**
 * Tests by their cost. `unit`: beside the files they test, quick. `component`: the same, with the engine or with processes.
 * `contract`: suites that every implementation of a port passes. `integration`: real servers and processes, each file in a
 * separate home. `recovery`: runs under faults. `tiles`: the engine's products for AMX. `alone`: files that need the whole machine.
 */
import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

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
const withServers = ['infra/stack/**/*.test.ts', 'tests/**/*.test.ts'];
const contracts = ['**/contracts/**/*.test.ts'];
const recovery = ['tests/recovery/**/*.test.ts', 'tests/integration/full-disk.test.ts'];
const alone = ['tests/threads.test.ts'];

/** One group, so that no core waits at the end of a project. Files with servers often wait: four keep two cores busy. */
const sideBySide = { maxWorkers: 4, sequence: { groupOrder: 1 } };

/** Files of several minutes. They begin first, so that at the end no core waits for one of them. */
const longest = [
  'kill-anything.test.ts',
  'recovery/kill-algorithms.test.ts',
  'black-box/desired-state.test.ts',
  'recovery/s3.test.ts',
  'integration/own-trainer.test.ts',
];

/** Processors without AMX run its products on tiles in memory, if they have the instructions for bf16 (native/RULES.md). */
const flags = readFileSync('/proc/cpuinfo', 'utf8');
const emulatesTiles = /\bavx512_bf16\b/.test(flags) && !/\bamx_bf16\b/.test(flags);

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => longest.some((name) => moduleId.endsWith(name));
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  test: {
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    maxWorkers: 2,
    // Guards against a test that never ends, longer than a wait in it may last (tests/patience.ts). No test has its own.
    testTimeout: 1_800_000,
    hookTimeout: 1_800_000,
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
        test: { name: 'component', include: withEngineOrProcesses, exclude: [...always, ...contracts], ...sideBySide },
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
