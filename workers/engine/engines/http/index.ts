/**
 * Samplers that somebody else runs: vLLM's and SGLang's servers at `rollout.url`. The engine is in every worker, since
 * it is nothing but requests; which server, the job says.
 */
import { createHash } from 'node:crypto';
import { dirname, join } from 'node:path';
import { serverRoot, httpName } from '../../../../core/sampling-server.ts';
import type { SamplingServer } from '../../../../core/sampling-server.ts';
import { InvalidInputError } from '../../../../core/errors.ts';
import type { SamplingEngine } from '../../../../core/ports/engines.ts';
import { petrelHome } from '../../../../infra/home.ts';
import { serverShared } from '../../../../infra/sampling-servers/faults.ts';
import { openServer, requireSuits } from '../../../../infra/sampling-servers/requirements.ts';
import type { SamplingApi, ServerFacts } from '../../../../infra/sampling-servers/sampling-api.ts';
import { vocabOf } from '../../../../models/config.ts';
import { readConfigJson } from '../../../../models/folder.ts';
import { namedKey } from '../../../../rewards/host/named-key.ts';
import { inTurn } from './folder-turn.ts';
import { parametersOf } from './parameters.ts';
import { HttpSampler } from './sampler.ts';
import { removeLeft } from './weights-folder.ts';

/** `tick`: called while a server does not answer yet. */
export function httpSamplers(tick: () => void, env: NodeJS.ProcessEnv = process.env): SamplingEngine {
  return {
    name: httpName,
    // A server reads the names of the tensors that it is given.
    reads: 'all',
    facts: () => ({
      name: httpName,
      device: 'a server',
      build: 'rollout.url',
      computes: ['fp32', 'bf16'],
      auto: { deterministic: 'fp32', otherwise: 'bf16' },
      deterministic: {},
      randomness: 'seeded',
      naming: 'lineage',
    }),
    arithmetic: () => httpName,
    async sampler({ folder: model }, { compute }, server) {
      if (server === undefined) throw new InvalidInputError('a sampler over HTTP needs rollout.url');
      const api = openServer(server, { ...namedKey(server.apiKey, env), tick });
      const folder = folderOf(server);
      const vocab = vocabOf(await readConfigJson(model));
      // A server answers nothing while another worker loads.
      const suiting = async () => {
        const found = await awake(server, api);
        await requireSuits(server, api, found, { vocab, maxModelLen: 1, samplings: [] });
        return found;
      };
      const facts = await inTurn(folder, suiting, tick);
      await removeLeft(dirname(folder));
      return new HttpSampler({
        ...{ server, api, facts, folder, model, vocab },
        parameters: await parametersOf(model, compute),
      });
    },
  };
}

/** What the server is. While this worker has the turn nobody loads: who began to is dead. */
async function awake({ url }: SamplingServer, api: SamplingApi): Promise<ServerFacts> {
  const facts = await api.describe();
  if (facts !== undefined) return facts;
  await api.wake();
  const woken = await api.describe();
  if (woken === undefined) throw serverShared(url, 'is given weights by somebody else');
  return woken;
}

/** Each server has a folder of its own: two must not load each other's weights. */
function folderOf({ url, weightsFolder = join(petrelHome(), 'sampling-servers') }: SamplingServer): string {
  const name = createHash('sha256').update(serverRoot(url)).digest('hex').slice(0, 16);
  return join(weightsFolder, name);
}
