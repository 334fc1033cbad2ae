/** How a model cannot be divided, known from its config.json before anything starts: what ranks would refuse, too. */
import type { Division } from '../../core/division.ts';
import { InvalidInputError } from '../../core/errors.ts';
import type { ModelRef } from '../../core/ports/engines.ts';
import { readConfigJson } from '../../models/folder.ts';
import { shapeOf } from './model-facts.ts';

/** Throws InvalidInputError. Says nothing of a decoder whose shapes its config does not give. */
export async function refuseDivision(model: ModelRef, division: Division): Promise<void> {
  const [shape, config] = [await shapeOf(model), await readConfigJson(model.folder)];
  if (shape === undefined) return;
  const { sequence = 1, tensor = 1, experts: among = 1 } = division;
  const heads = Number(config['num_attention_heads']);
  const keys = Number(config['num_key_value_heads'] ?? heads);
  const experts = shape.layers.flatMap(({ parameters }) => parameters.flatMap((one) => one.experts?.count ?? []));
  const refuse = (key: string, size: number, why: string, hint: string): never => {
    const where = `trainer.${key}`;
    throw new InvalidInputError(`${where}=${size}: ${model.folder}/config.json has ${why}`, { where, hint });
  };
  const common = (...counts: readonly number[]) => `use a divisor of ${counts.reduce(greatestCommon)}`;
  if (heads % tensor !== 0 || keys % tensor !== 0)
    refuse('tensor_model_parallel_size', tensor, headsText(heads, keys), common(heads, keys));
  const [own, ownKeys] = [heads / tensor, keys / tensor];
  const key = 'ulysses_sequence_parallel_size';
  if (own % sequence !== 0 || (ownKeys % sequence !== 0 && sequence % ownKeys !== 0))
    refuse(key, sequence, headsText(heads, keys), common(own, ownKeys));
  const stretched = ropeTypes(config['rope_parameters'] ?? config['rope_scaling']).find((type) =>
    ['dynamic', 'longrope', 'su'].includes(type),
  );
  if (sequence > 1 && stretched !== undefined)
    refuse(key, sequence, `${stretched} positions, which follow from the length of a whole sequence`, 'use 1');
  if (sequence > 1 && shape.layers.some(({ attention }) => attention.isMasked))
    refuse(key, sequence, 'layers that attend by a mask of the whole pack, whose tokens cannot be divided', 'use 1');
  if (among > 1 && experts.length === 0)
    refuse('expert_model_parallel_size', among, 'no experts', 'use 1, and trainer.fsdp_size to divide the model');
  const odd = experts.find((count) => count % among !== 0);
  if (odd !== undefined) refuse('expert_model_parallel_size', among, `${odd} experts`, common(odd));
}

/** Kinds of rotary positions, of all types of layers. */
function ropeTypes(given: unknown): string[] {
  if (typeof given !== 'object' || given === null) return [];
  const { rope_type: type, type: former } = given as Readonly<Record<string, unknown>>;
  const own = [type, former].filter((name): name is string => typeof name === 'string');
  return [...own, ...Object.values(given).flatMap(ropeTypes)];
}

const headsText = (heads: number, keys: number): string =>
  keys === heads ? `${heads} heads` : `${heads} heads, and ${keys} of keys and values`;

const greatestCommon = (a: number, b: number): number => (b === 0 ? a : greatestCommon(b, a % b));
