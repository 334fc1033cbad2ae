/** The control process: Temporal workflows and activities. */
import type { ChildSpec } from '../child-spec.ts';
import { nodeChild } from './node.ts';

/**
 * V8 lets a small heap grow to four times its live objects before it collects garbage, and to less when the heap's bound is lower.
 * The live objects are about 75 MB with 200 workers; with this bound the process stays below 350 MB, and had 521 without
 * (docs/benchmarks.md).
 */
const nodeArgs = ['--max-old-space-size=1536'];

export function controlChild(home: string, program: string): ChildSpec {
  return nodeChild(home, { name: 'control', kind: 'control', program, nodeArgs, args: [], stopGraceMs: 10_000 });
}
