/** The server at `rollout.url` is asked, from this machine, whether it can sample for the run. */
import { join } from 'node:path';
import { existsSync } from 'node:fs';
import { batchArithmetic, samplingServer, samplingSettings } from '../../core/recipe/index.ts';
import { samplesResponses } from '../../core/run-kinds.ts';
import { shownUrl } from '../../core/endpoint.ts';
import { wrongServer } from '../../infra/sampling-servers/faults.ts';
import { openServer, requireSuits } from '../../infra/sampling-servers/requirements.ts';
import { readConfigJson } from '../../models/folder.ts';
import { namedKey } from '../../rewards/host/named-key.ts';
import { secretNames } from '../../rewards/host/secrets.ts';
import type { Check } from './checks.ts';

/** A server that is alive answers such questions at once. */
const answerMs = 60_000;
/** What differs between two models that have the same tokens. */
const shapeFields = ['model_type', 'hidden_size', 'num_hidden_layers', 'num_attention_heads', 'intermediate_size'];

export const samplingServerCheck: Check = {
  name: 'server',
  look: async (inputs) => {
    const { recipe, ports } = inputs;
    const server = samplesResponses(recipe.kind) ? samplingServer(recipe) : undefined;
    if (server === undefined) return undefined;
    const [name] = secretNames({ apiKey: server.apiKey });
    if (name !== undefined && !ports.env[name])
      return { status: 'later', detail: `not asked: ${name} is not set here; the workers that sample need it` };
    const asked = { silenceMs: Math.min(answerMs, server.timeoutMs) };
    const api = openServer(server, namedKey(server.apiKey, ports.env));
    const facts = await api.describe(asked);
    const { folder } = await inputs.model();
    await requireSameShape(server.url, facts.root, folder);
    const { vocab } = await inputs.modelFacts();
    const wishes = {
      vocab,
      maxModelLen: batchArithmetic(recipe).longestSequence,
      samplings: (['train', 'validate'] as const).map((purpose) => samplingSettings(recipe, purpose)),
    };
    await requireSuits(server, api, facts, wishes, asked);
    return { detail: `${shownUrl(server.url)}: ${facts.version}, serves ${facts.model} and takes new weights` };
  },
};

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
