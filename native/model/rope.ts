/**
 * Rotary position frequencies of a Hugging Face configuration, in float64.
 * v4 keys: `rope_theta` at the top and `rope_scaling` (null, or with `rope_type`, or with the old `type`).
 * v5 keys: `rope_parameters`, with `rope_theta` inside, possibly nested by layer type.
 */
import { InvalidInputError } from '../../core/errors.ts';
import { pow } from '../../core/math/pow.ts';
import { Fields, isObject, show } from '../../models/fields.ts';

const supportedRopeTypes = ['default', 'linear', 'llama3'] as const;

/**
 * headDim / 2 inverse frequencies, scaling applied. `mayTurnFewer`: the family reads `partial_rotary_factor`, so that
 * only the leading dimensions of a head turn and the list is shorter.
 */
export function ropeInverseFrequencies(
  config: Fields,
  headDim: number,
  maxPositions: number,
  mayTurnFewer = false,
): number[] {
  const rope = new Fields(ropeSettings(config), `${config.where}: rope`);
  refuseContradictions(config, rope);
  const theta = rope.positive('rope_theta', config.positive('rope_theta', 10_000));
  const partial = rope.get('partial_rotary_factor') ?? config.get('partial_rotary_factor') ?? 1;
  if (partial !== 1 && !mayTurnFewer)
    throw unsupported(config, `partial_rotary_factor ${show(partial)} is not supported; supported: 1`);
  const turning = partial === 1 ? headDim : leadingDimensions(config, headDim, partial);

  const plain = Array.from({ length: turning / 2 }, (_, i) => 1 / pow(theta, (2 * i) / turning));
  const type = rope.get('rope_type') ?? rope.get('type') ?? 'default';
  if (type === 'default') return plain;
  if (type === 'linear') {
    const factor = rope.positive('factor');
    return plain.map((frequency) => frequency / factor);
  }
  if (type === 'llama3') return llama3Scaling(plain, rope, maxPositions);
  throw unsupported(config, `rope type ${show(type)} is not supported; supported: ${supportedRopeTypes.join(', ')}`);
}

/**
 * Old and new keys may stand side by side, with one meaning: in settings of transformers 4 and 5, and of its `type`.
 */
function refuseContradictions(config: Fields, rope: Fields): void {
  const [scaling, parameters] = [config.get('rope_scaling'), config.get('rope_parameters')];
  const pairs: readonly (readonly [string, unknown, string, unknown])[] = [
    ['rope_type', rope.get('rope_type'), 'type', rope.get('type')],
    ['rope_theta', config.get('rope_theta'), 'rope_theta of the rope settings', rope.get('rope_theta')],
    [
      'partial_rotary_factor',
      config.get('partial_rotary_factor'),
      'that of the rope settings',
      rope.get('partial_rotary_factor'),
    ],
    ...(isObject(scaling) && isObject(parameters)
      ? ['rope_type', 'type', 'factor', 'rope_theta'].map(
          (name) => [`rope_scaling.${name}`, scaling[name], `rope_parameters.${name}`, parameters[name]] as const,
        )
      : []),
  ];
  for (const [name, value, other, found] of pairs)
    if (value !== undefined && found !== undefined && value !== null && found !== null && value !== found)
      throw unsupported(config, `${name} is ${show(value)}, but ${other} is ${show(found)}: remove the wrong one`);
}

/** How many dimensions of a head turn, rounded down as in transformers. */
function leadingDimensions(config: Fields, headDim: number, partial: unknown): number {
  const turning = typeof partial === 'number' && partial > 0 && partial <= 1 ? Math.floor(headDim * partial) : 0;
  if (turning > 0 && turning % 2 === 0) return turning;
  throw unsupported(
    config,
    `partial_rotary_factor ${show(partial)} is not supported; supported: up to 1, with an even number of the ${headDim} dimensions of a head`,
  );
}

/**
 * Long wavelengths are slowed by `factor`, short ones are kept, and between the limits the two are blended (Llama 3.1).
 */
function llama3Scaling(plain: readonly number[], rope: Fields, maxPositions: number): number[] {
  const factor = rope.positive('factor');
  const low = rope.positive('low_freq_factor');
  const high = rope.positive('high_freq_factor');
  const context = rope.positive('original_max_position_embeddings', maxPositions);
  if (high <= low) throw rope.refuse('high_freq_factor', `greater than low_freq_factor (${low})`);
  return plain.map((frequency) => {
    const wavelength = (2 * Math.PI) / frequency;
    if (wavelength < context / high) return frequency;
    if (wavelength > context / low) return frequency / factor;
    const smooth = (context / wavelength - low) / (high - low);
    return ((1 - smooth) * frequency) / factor + smooth * frequency;
  });
}

/** The one set of rope settings. Layer types with different settings are refused, because the engine has one table. */
function ropeSettings(config: Fields): unknown {
  const settings = config.get('rope_scaling') ?? config.get('rope_parameters') ?? {};
  if (!isObject(settings)) return settings;
  const nested = Object.entries(settings).filter(([name]) => /_attention$/.test(name));
  if (nested.length === 0) return settings;
  const forms = new Set(
    nested.map(([, value]) => JSON.stringify(value, isObject(value) ? Object.keys(value).sort() : null)),
  );
  if (forms.size > 1)
    throw unsupported(config, 'rope_parameters that differ by layer type are not supported for these families');
  return nested[0]?.[1];
}

function unsupported(config: Fields, message: string): InvalidInputError {
  return new InvalidInputError(`${config.where}: ${message}`, { where: config.where });
}
