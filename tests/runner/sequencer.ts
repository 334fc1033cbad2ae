/** Tells Vitest in which order the files begin, and which of them a shard has. */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { TestSpecification, Vitest } from 'vitest/node';
import { borrows } from '../lent-homes.ts';
import { readDurations, secondsOf } from './durations.ts';
import { longestFirst, shareOf } from './schedule.ts';

export class ByDuration {
  readonly #vitest: Vitest;

  constructor(vitest: Vitest) {
    this.#vitest = vitest;
  }

  async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return longestFirst(files, this.#seconds()).sort((a, b) => rank(a) - rank(b));
  }

  async shard(files: TestSpecification[]): Promise<TestSpecification[]> {
    const { index, count } = this.#vitest.config.shard ?? { index: 1, count: 1 };
    return shareOf(files.toSorted(byName), this.#seconds(), index, count);
  }

  #seconds(): (file: TestSpecification) => number {
    const { root } = this.#vitest.config;
    const durations = readDurations(root);
    return ({ project, moduleId }) => secondsOf(durations, project.name, relative(root, moduleId));
  }
}

/**
 * Files that share their modules stay together: another project's file between two of them would end the sharing. Files
 * that share stacks are the last ones, so that no stack waits for its next file for long.
 */
function rank({ moduleId, project: { vitest, name, config } }: TestSpecification): number {
  if (borrows(readFileSync(moduleId, 'utf8'))) return vitest.projects.length + 1;
  const place = vitest.projects.findIndex((project) => project.name === name);
  return config.isolate ? 0 : 1 + place;
}

function byName(a: TestSpecification, b: TestSpecification): number {
  const [one, other] = [a, b].map(({ project, moduleId }) => `${project.name} ${moduleId}`) as [string, string];
  return one < other ? -1 : one > other ? 1 : 0;
}
