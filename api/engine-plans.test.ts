/** What is known of a model before torch runs it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { plansOf } from './engine-plans.ts';

const folder = mkdtempSync(join(tmpdir(), 'petrel-plans-'));
afterAll(() => rmSync(folder, { recursive: true }));
const config = { model_type: 'own', num_hidden_layers: 2, vocab_size: 9, max_position_embeddings: 64 };
const save = (name: string, value: object) => writeFileSync(join(folder, name), JSON.stringify(value));

it('a reward model gives one score: a classifier with more is refused, a language model gets a new head', async () => {
  const read = () => plansOf('torch').readModel({ folder, head: 'scores' });
  save('config.json', { ...config, architectures: ['OwnForCausalLM'] });
  expect(await read()).toMatchObject({ family: 'own', layers: 2, vocab: 9 });
  save('config.json', { ...config, architectures: ['OwnForSequenceClassification'], num_labels: 3 });
  await expect(read()).rejects.toThrow(/one score, found 3 labels/);
  save('config.json', { ...config, architectures: ['OwnForSequenceClassification'], id2label: { 0: 'LABEL_0' } });
  expect(await read()).toMatchObject({ family: 'own' });
});

it('a folder with an adapter beside the weights is refused', async () => {
  save('config.json', config);
  save('adapter_config.json', {});
  await expect(plansOf('torch').readModel({ folder, head: 'tokens' })).rejects.toThrow(/beside the weights/);
});
