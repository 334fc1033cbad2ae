/** A process of petrel's own, run by this Node. It reports readiness with `announceReady`. */
import { rmSync } from 'node:fs';
import type { ChildSpec } from '../child-spec.ts';
import { hasAnnounced, readyFileVariable } from '../ready.ts';
import { readyFile } from '../state.ts';

export interface NodeChildOptions extends Pick<ChildSpec, 'name' | 'kind' | 'args' | 'stopGraceMs'> {
  readonly program: string;
  /** Options of Node itself. */
  readonly nodeArgs?: readonly string[];
}

export function nodeChild(
  home: string,
  { name, kind, program, nodeArgs = [], args, stopGraceMs }: NodeChildOptions,
): ChildSpec {
  const announced = readyFile(home, name);
  return {
    name,
    kind,
    command: process.execPath,
    args: [...nodeArgs, program, ...args],
    env: { [readyFileVariable]: announced },
    prepare: () => rmSync(announced, { force: true }),
    isReady: (process) => hasAnnounced(announced, process),
    readyTimeoutMs: 60_000,
    stopGraceMs,
  };
}
