/** The reward model's folder: one score, the tensors of its config, and the tokenizer of the policy. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { InvalidInputError } from '../../core/errors.ts';
import { showCount } from '../../core/quantities.ts';
import { headOfConfig, readScoreSpec } from '../../models/config.ts';
import { openSafetensors } from '../../models/safetensors.ts';
import { checkTensors, readConfigJson } from '../../models/weights.ts';
import type { Check } from './checks.ts';

export const rewardModelCheck: Check = {
  name: 'reward model',
  look: async (inputs) => {
    const located = await inputs.rewardModel();
    if (located === undefined) return undefined;
    const { folder, missingBytes = 0 } = located;
    const config = await readConfigJson(folder);
    const where = join(folder, 'config.json');
    if (headOfConfig(config) !== 'scores')
      throw new InvalidInputError(
        `${where}: a reward model is a sequence classifier, found the architecture ${JSON.stringify(config['architectures'] ?? null)}`,
        { where, hint: 'train one with kind: rm and write it with petrel ckpt export' },
      );
    const spec = readScoreSpec(config, where);
    await refuseOtherTokenizer(folder, (await inputs.model()).tokenizerFolder);
    const parameters = spec.tensors.reduce((sum, { shape }) => sum + shape.reduce((size, n) => size * n, 1), 0);
    const detail = `${inputs.recipe.reward.reward_model.path}: ${spec.family}, ${showCount(parameters)} parameters`;
    if (missingBytes > 0) return { status: 'later', detail: `${detail}; its weights are fetched by the run` };
    const source = await openSafetensors(folder);
    try {
      checkTensors(source, spec.tensors, false);
    } finally {
      await source.close();
    }
    return { detail };
  },
};

/** The model reads the policy's tokens as they are. (verl decodes the responses and renders them for the other tokenizer.) */
async function refuseOtherTokenizer(folder: string, ofPolicy: string): Promise<void> {
  const [own, policy] = await Promise.all([digestOf(folder), digestOf(ofPolicy)]);
  if (own === policy && own !== undefined) return;
  throw new InvalidInputError(
    `${folder}: a reward model reads the tokens of the policy, and its tokenizer.json ${own === undefined ? 'is missing' : `differs from that of ${ofPolicy}`}`,
    {
      where: join(folder, 'tokenizer.json'),
      hint: 'use a reward model that was trained from a model with this tokenizer',
    },
  );
}

async function digestOf(folder: string): Promise<string | undefined> {
  const bytes = await readFile(join(folder, 'tokenizer.json')).catch(() => undefined);
  return bytes && createHash('sha256').update(bytes).digest('hex');
}
