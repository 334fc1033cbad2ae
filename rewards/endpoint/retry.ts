/** Decides when a request is sent again, and what to change when that cannot help. */
import type { EndpointSettings } from '../../core/endpoint.ts';

const longestWaitMs = 30_000;

/**
 * Pause before try number `failed` + 1: `first` after the first failure, twice as long after each further one, at most
 * 30 s; of this a random half to whole, so that requests which failed together do not come back together.
 */
export function waitMs(failed: number, first: number, random: number): number {
  return Math.min(longestWaitMs, first * 2 ** Math.min(failed - 1, 20)) * (0.5 + random / 2);
}

/** The header Retry-After: seconds, or a date. */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

export function statusHint(status: number, { apiKey, model }: EndpointSettings, command: string): string {
  const resume = `then ${command}`;
  if (status === 401 || status === 403)
    return apiKey === undefined
      ? `it wants a key: set reward.endpoint.api_key to env:NAME, ${resume}`
      : `check the value of ${apiKey.slice('env:'.length)} in the environment of the workers: set it, petrel down, petrel up, ${resume}`;
  if (status === 404)
    return `check reward.endpoint.url${model === undefined ? '' : ` and whether it serves the model ${model}`}, ${resume} reward.endpoint.url=…`;
  if (status >= 300 && status < 400) return `set reward.endpoint.url to the address that it names, ${resume}`;
  if (status === 413)
    return `the request is too long for it: shorten reward.endpoint.template or data.max_response_length, ${resume}`;
  return `it does not take what the recipe asks for: check model, temperature, max_tokens, extra_body and template under reward.endpoint, ${resume}`;
}
