/** What the inputs of several stages have. */
import { z } from 'zod';
import { digest, numericProfile } from '../../records/schema.ts';
import { engineFacts } from '../engine-facts.ts';

export const count = z.int().nonnegative();
export const some = z.int().positive();
export const seed = z.tuple([z.int(), z.int()]).readonly();
export const draws = z.array(z.strictObject({ draw: count, row: count })).readonly();
/** Name of an engine or of a sampler. */
export const engineName = engineFacts.shape.name;

/**
 * A result object is never overwritten. When it is damaged, or a blob that it names is lost, the job runs again with
 * the next generation number, and so with another job id. Everyone who finds the same damage derives the same id.
 */
export const recomputable = {
  /** Absent: 0. */
  generation: count.exactOptional(),
};

/** What a job works on in a run whose state has components. */
export const trains = {
  /** The components that a job works on. Absent: only the actor. */
  components: z.array(z.string()).readonly().exactOptional(),
  /**
   * The run is divided: these are not all of its components, and the others have jobs of their own, which another
   * trainer can take. A state in the input and the output is then that of these components. Absent: the run is not
   * divided.
   */
  part: z.literal(true).exactOptional(),
};
const trainsObject = z.strictObject(trains);
export type Trains = z.infer<typeof trainsObject>;

/** Which share of a run's training a trainer's job does. */
export interface TrainerShare {
  /** The components of the job, where the run is divided and has a trainer for others. Absent: all. */
  readonly components?: readonly string[];
  /** True when the job is one of the run's standby. */
  readonly standby?: true;
}

/** The share of a job by its input, of whatever stage it is. */
export function trainerShareOf(input: object): TrainerShare {
  const { part, components, standby } = input as Partial<Trains> & { readonly standby?: true };
  return { ...(part === true && components && { components }), ...(standby === true && { standby }) };
}

/** The base model of a run's states, and the arithmetic that makes them. */
export const ofState = { model: digest, profile: numericProfile };
