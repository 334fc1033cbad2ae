/** The control process: Temporal workflows and activities. */
import type { ChildSpec } from '../child-spec.ts';
import { nodeChild } from './node.ts';

/**
 * V8 lets a small heap grow to four times its live objects before it collects garbage, and to less when the bound of the heap is
 * lower. With 75 MB of live objects this bound keeps the process 80 MB smaller (docs/benchmarks.md), and is far above its need.
 */
const nodeArgs = ['--max-old-space-size=1536'];

export function controlChild(home: string, program: string): ChildSpec {
  return nodeChild(home, { name: 'control', kind: 'control', program, nodeArgs, args: [], stopGraceMs: 10_000 });
}
