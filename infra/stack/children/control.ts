/** The control process: Temporal workflows and activities. */
import type { ChildSpec } from '../child-spec.ts';
import { nodeChild } from './node.ts';

export function controlChild(home: string, program: string): ChildSpec {
  return nodeChild(home, { name: 'control', kind: 'control', program, args: [], stopGraceMs: 10_000 });
}
