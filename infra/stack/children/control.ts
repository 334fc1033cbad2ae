/** The control process: Temporal workflows and activities. */
import type { ChildSpec } from '../child-spec.ts';
import { nodeChild } from './node.ts';

/**
 * V8 lets a small heap grow to four times its live objects before it collects garbage, and to less when the heap's
 * bound is lower. The live objects are about 75 MB with 200 workers; the process takes 340 MB with this bound, and took
 * up to 521 without it (docs/look-up/benchmarks.md).
 */
const nodeArgs = ['--max-old-space-size=1536'];

export function controlChild(home: string, program: string): ChildSpec {
  return nodeChild(home, { name: 'control', kind: 'control', program, nodeArgs, args: [], stopGraceMs: 10_000 });
}
