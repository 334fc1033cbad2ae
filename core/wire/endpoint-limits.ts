import { z } from 'zod';
import type { EndpointLimits } from '../endpoint.ts';

const some = z.int().positive();

/**
 * The limits of an endpoint, as jobs and permits carry them. They are not in core/endpoint.ts, because a scorer's
 * process reads that file in a sandbox, where zod is not.
 */
export const endpointLimits = z.object({
  concurrent: some,
  rpm: some.optional(),
  tpm: some.optional(),
}) satisfies z.ZodType<EndpointLimits>;
