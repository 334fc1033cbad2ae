/** A forward pass of one micro-batch, where there is nothing to compute beside it. */
import { at } from '../at.ts';
import type { Call, ForwardOptions, ForwardResult, OutputName, PackedBatch, PolicyEngine } from './policy.ts';

export async function forwardOne<Wanted extends OutputName>(
  engine: Pick<PolicyEngine, 'forward'>,
  batch: PackedBatch,
  options: ForwardOptions<Wanted>,
  call?: Call,
): Promise<ForwardResult<Wanted>> {
  return at(await engine.forward([batch], options, call), 0);
}

/** Neighbours that an engine computes side by side. */
export function* rowsOf<T>(items: Iterable<T>, { lanes }: Pick<PolicyEngine, 'lanes'>): Generator<T[]> {
  let row: T[] = [];
  for (const item of items) {
    row.push(item);
    if (row.length < lanes) continue;
    yield row;
    row = [];
  }
  if (row.length > 0) yield row;
}
