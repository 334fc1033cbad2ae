/** The endpoint of a recipe is asked once, from this machine. */
import { endpointSettings } from '../../core/recipe/index.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import { outboundWays } from '../../infra/outbound/ways.ts';
import { probeEndpoint } from '../../rewards/endpoint/probe.ts';
import { secretNames } from '../../rewards/host/secrets.ts';
import type { Check } from './checks.ts';

export const endpointCheck: Check = {
  name: 'endpoint',
  look: async ({ recipe, ports: { env } }) => {
    const endpoint = samplesResponses(recipe.kind) ? endpointSettings(recipe) : undefined;
    if (endpoint?.url === undefined) return undefined;
    const missing = secretNames(endpoint).filter((name) => !env[name]);
    if (missing.length > 0)
      return {
        status: 'later',
        detail: `not asked: ${missing.join(', ')} is not set here; the workers that score need it`,
      };
    return { detail: await probeEndpoint(endpoint, env, outboundWays()) };
  },
};
