/**
 * A model that only samples: small models of the real engine, holders on loopback, and a store in a folder; in fp32 and
 * in bf16.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Digest, RunId } from '../../../core/ids.ts';
import type { PolicyEngine } from '../../../core/ports/policy.ts';
import type { Store } from '../../../core/ports/store.ts';
import { keys } from '../../../core/records/keys.ts';
import { publishedBytes } from '../../../core/records/publications.ts';
import { recordFormat } from '../../../core/records/schema.ts';
import type { NumericProfile, WeightsManifest } from '../../../core/records/schema.ts';
import { openFolderStore } from '../../../infra/store/folder.ts';
import { encodeRecord } from '../../../log/objects/records.ts';
import { engineInfo } from '../../../native/index.ts';
import { decoder, trainerOf } from '../../../native/testing/decoders.ts';
import { serveWeights } from './holder-server.ts';
import { wholeWeights } from './growing-weights.ts';
import type { ReadableWeights, WeightsHolder } from './growing-weights.ts';
import { generatorWith } from '../engines/native/index.ts';
import { NativePolicy } from '../engines/native/policy.ts';
import { OwningNativeSampler } from '../engines/native/sampler.ts';
import { savePublished } from './published-shards.ts';
import { RolloutModel } from './rollout-model.ts';
import type { WantedWeights } from './rollout-model.ts';
import { publicationRoot, rootOf } from '../engines/roots.ts';

const secret = 'cd'.repeat(32);
const runId = 'run' as RunId;
const model = 'a'.repeat(64) as Digest;
const can = engineInfo().bf16;

describe.each([
  { format: 'F32', compute: 'fp32' } as const,
  ...(can ? [{ format: 'BF16', compute: 'bf16' } as const] : []),
])(
  'a model that only samples, published in $format (in BF16 where the processor has AVX512_BF16)',
  ({ format, compute }) => {
    const folder = mkdtempSync(join(tmpdir(), 'petrel-rollout-model-'));
    const options = { engine: 'native', deterministic: true, device: 'avx2', blockHash: 'blake3' };
    const profile = { id: 'any', compute, ...options } as unknown as NumericProfile;
    const policyOf = (seed: number): NativePolicy =>
      new NativePolicy(trainerOf(decoder({ hidden: 21, vocab: 41 }), seed, { compute, trainable: false }));
    const [one, two, three] = [policyOf(1), policyOf(2), policyOf(3)];
    const size = publishedBytes(one.parameters, format);
    let store: Store;

    beforeAll(async () => {
      store = await openFolderStore(folder);
      await store.create(keys.run(runId), new Uint8Array());
    });
    afterAll(async () => {
      for (const policy of [one, two, three]) await policy.close();
      rmSync(folder, { recursive: true });
    });

    const digestOf = (policy: PolicyEngine) => publicationRoot(policy, format, 'blake3');
    const all = async (holder: WeightsHolder) => {
      const into = new Uint8Array(size);
      await holder.readPublished?.(format, 0, into);
      return into;
    };

    /** A process that says that it has the weights of `named`, and sends those of `has`. */
    async function holder(has: PolicyEngine, named = has): Promise<string> {
      const digest = await digestOf(named);
      return serveWeights('127.0.0.1', {
        secretOf: () => secret,
        weightsOf: async (_, asked) => (asked === digest ? wholeWeights(has, format, () => true) : undefined),
      });
    }

    async function publish(policy: PolicyEngine): Promise<void> {
      const digest = await digestOf(policy);
      const place = { store, runId, iteration: 1, shardBytes: 4096 };
      const manifest: WeightsManifest = {
        format: recordFormat,
        component: 'actor',
        weightsDigest: digest,
        blockHash: 'blake3',
        ...(await savePublished(place, policy, { format, digest })),
      };
      expect(manifest.shards.length).toBeGreaterThan(2);
      await store.put(keys.weights(runId, digest), encodeRecord(manifest));
    }

    const wanted = async (policy: PolicyEngine, holders: readonly string[]): Promise<WantedWeights> => ({
      runId,
      store: pathToFileURL(folder).href,
      iteration: 1,
      model,
      profile,
      sampler: 'native',
      weights: await rootOf(policy, 'weights', 'blake3'),
      publication: { format, digest: await digestOf(policy) },
      holders,
      secret,
    });

    function place(policy: ReadableWeights | undefined = undefined) {
      const seen = { opened: 0, closed: 0, ended: 0, lines: [] as string[] };
      const rollout = new RolloutModel({
        store: async () => store,
        open: async () => {
          seen.opened += 1;
          return new OwningNativeSampler(policyOf(9), generatorWith);
        },
        policy: () => policy,
        base: () => Promise.reject(new Error('no base here')),
        interrupt: async () => void (seen.ended += 1),
        close: (sampler) => {
          seen.closed += 1;
          return sampler.close();
        },
        tick: () => {},
        log: (line) => seen.lines.push(line),
      });
      return { rollout, seen };
    }

    it('gets new weights in place from a holder, and reads nothing from the store', async () => {
      const { rollout, seen } = place();
      for (const policy of [one, two])
        expect(await rollout.use(await wanted(policy, [await holder(policy)]), all)).toEqual(await all(policy));
      expect(seen).toEqual({ opened: 1, closed: 0, ended: 1, lines: [] });
      expect(rollout.takeRead()).toEqual({ holders: 2 * size, store: 0 });
    });

    it('gets new weights from a policy of its process, unless other ones came into it meanwhile', async () => {
      const { rollout, seen } = place(wholeWeights(one, format, () => true));
      expect(await rollout.use(await wanted(one, ['http://127.0.0.1:1']), all)).toEqual(await all(one));
      expect(rollout.takeRead()).toEqual({ holders: 0, store: 0 });
      expect(await rollout.use(await wanted(two, [await holder(two)]), all)).toEqual(await all(two));
      expect(rollout.takeRead()).toEqual({ holders: size, store: 0 });
      expect(seen.lines).toEqual([]);
    });

    it('gives its own weights to the next one', async () => {
      const [first, second] = [place(), place()];
      const want = await wanted(one, [await holder(one)]);
      await first.rollout.use(want, all);
      const url = await serveWeights('127.0.0.1', {
        secretOf: () => secret,
        weightsOf: (run, asked) => first.rollout.soonReadable(run, asked),
      });
      expect(await second.rollout.use({ ...want, holders: [url] }, all)).toEqual(await all(one));
      await first.rollout.use(await wanted(two, [await holder(two)]), all);
      expect(await first.rollout.soonReadable(runId, want.publication.digest)).toBeUndefined();
    });

    it('reads the store when a holder sends other weights, and says so', async () => {
      const { rollout, seen } = place();
      await publish(three);
      const lying = await holder(one, three);
      expect(await rollout.use(await wanted(three, [lying]), all)).toEqual(await all(three));
      expect(seen.lines).toEqual([expect.stringContaining('do not match their digest')]);
      expect(rollout.takeRead()).toMatchObject({ store: size });
    });

    it('fails when nobody has them, frees its memory, and can be asked again', async () => {
      const { rollout, seen } = place();
      const want = await wanted(two, ['http://127.0.0.1:1']);
      await expect(rollout.use(want, all)).rejects.toMatchObject({ code: 'WeightsMissing' });
      expect([seen.opened, seen.closed]).toEqual([1, 1]);
      expect(await rollout.use({ ...want, holders: [await holder(two)] }, all)).toEqual(await all(two));
    });

    it('gets weights ahead only when it has earlier ones of the run and nothing to do', async () => {
      const { rollout, seen } = place();
      const [first, next] = [await wanted(one, [await holder(one)]), await wanted(two, [await holder(two)])];
      await rollout.prefetch(first);
      expect(seen.opened).toBe(0);
      await rollout.use(first, async () => {
        await rollout.prefetch(next);
        expect(seen.ended).toBe(0);
      });
      await rollout.prefetch({ ...next, runId: 'other' as RunId });
      expect(seen.ended).toBe(0);
      await rollout.prefetch(next);
      expect(seen.ended).toBe(1);
      expect(await rollout.use({ ...next, holders: [] }, all)).toEqual(await all(two));
    });
  },
);
