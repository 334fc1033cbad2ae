/** The size of a low-rank adapter that is trained beside a model. */
import type { AdapterWanted } from '../../core/ports/engine-plans.ts';
import { linearLayersOf } from '../../models/decoder-shape.ts';
import type { DecoderShape } from '../../models/decoder-shape.ts';
import { matchingLayers } from '../../models/lora.ts';

/** Elements of A [rank, in] and B [out, rank] beside each layer that is named. Throws InvalidInputError. */
export function adapterElements(shape: DecoderShape, { rank, targets }: AdapterWanted): number {
  const layers = matchingLayers(linearLayersOf(shape), targets, 'config.json');
  return layers.reduce((sum, layer) => sum + rank * (layer.in + layer.out), 0);
}
