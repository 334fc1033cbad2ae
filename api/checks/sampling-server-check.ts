/** The server at `rollout.url` is asked, from this machine, whether it can sample for the run. */
import { join } from 'node:path';
import { existsSync } from 'node:fs';
import { batchArithmetic, samplingServer, samplingSettings } from '../../core/recipe/index.ts';
import type { Recipe } from '../../core/recipe/index.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import { shownUrl } from '../../core/endpoint.ts';
import { wrongServer } from '../../infra/sampling-servers/faults.ts';
import { openServer, requireSuits } from '../../infra/sampling-servers/requirements.ts';
import { vocabOf } from '../../models/config.ts';
import { readConfigJson } from '../../models/folder.ts';
import { namedKey } from '../../rewards/host/named-key.ts';
import { secretNames } from '../../rewards/host/secrets.ts';
import type { Check, Finding } from './checks.ts';

/** A server that is alive answers such questions at once. */
const answerMs = 60_000;
/** What differs between two models that have the same tokens. */
const shapeFields = ['model_type', 'hidden_size', 'num_hidden_layers', 'num_attention_heads', 'intermediate_size'];

export const samplingServerCheck: Check = {
  name: 'server',
  look: (inputs) => askServer(inputs.recipe, inputs.ports.env, async () => (await inputs.model()).folder),
};

/**
 * Asks the server of a run that starts or goes on; `model`: gives the folder of the run's model. Throws PauseError
 * `WrongServer` for one that does not suit. Undefined: no server samples.
 */
export async function askServer(
  recipe: Recipe,
  env: NodeJS.ProcessEnv,
  model: () => Promise<string>,
): Promise<Finding | undefined> {
  const server = samplesResponses(recipe.kind) ? samplingServer(recipe) : undefined;
  if (server === undefined) return undefined;
  const [name] = secretNames({ apiKey: server.apiKey });
  if (name !== undefined && !env[name])
    return { status: 'later', detail: `not asked: ${name} is not set here; the workers that sample need it` };
  const asked = { silenceMs: Math.min(answerMs, server.timeoutMs) };
  const api = openServer(server, namedKey(server.apiKey, env));
  const facts = await api.describe(asked);
  if (facts === undefined)
    return {
      status: 'later',
      detail: `not asked: ${shownUrl(server.url)} gets weights just now; the first job asks it`,
    };
  const folder = await model();
  await requireSameShape(server.url, facts.root, folder);
  const wishes = {
    vocab: vocabOf(await readConfigJson(folder)),
    maxModelLen: batchArithmetic(recipe).longestSequence,
    samplings: (['train', 'validate'] as const).map((purpose) => samplingSettings(recipe, purpose)),
  };
  await requireSuits(server, api, facts, wishes, asked);
  return { detail: `${shownUrl(server.url)}: ${facts.version}, serves ${facts.model} and takes new weights` };
}

/** Where the server’s folder is here, too, its config.json shows another model before any weights do. */
async function requireSameShape(url: string, served: string, folder: string): Promise<void> {
  if (!existsSync(join(served, 'config.json'))) return;
  const [theirs, ours] = [await readConfigJson(served), await readConfigJson(folder)];
  const other = shapeFields.find((field) => theirs[field] !== ours[field]);
  if (other === undefined) return;
  throw wrongServer(
    url,
    `serves another model: ${other} is ${String(theirs[other])} in ${served}, and ${String(ours[other])} in the recipe’s`,
    `start it with the model of the recipe: ${folder}`,
  );
}
