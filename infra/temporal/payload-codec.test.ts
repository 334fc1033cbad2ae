import { defaultPayloadConverter } from '@temporalio/common';
import type { Payload } from '@temporalio/common';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { foreignPayload, isForeign } from '../../core/wire/foreign.ts';
import { newPayloadKey, payloadCodec } from './payload-codec.ts';

const codec = payloadCodec(newPayloadKey());
const plain = (value: unknown): Payload => defaultPayloadConverter.toPayload(value);
const valueOf = (payload: Payload | undefined): unknown => defaultPayloadConverter.fromPayload(payload as Payload);

async function decoded(payload: Payload): Promise<unknown> {
  const [back] = await codec.decode([payload]);
  return valueOf(back);
}

async function encoded(value: unknown): Promise<Payload> {
  const [payload] = await codec.encode([plain(value)]);
  return payload as Payload;
}

it('every value can be decoded, and the encoded form reveals nothing of it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.jsonValue(), fc.constant(undefined), fc.uint8Array()), async (value) => {
      const payload = await encoded(value);
      expect(await decoded(payload)).toEqual(valueOf(plain(value)));
    }),
  );
  const text = Buffer.from((await encoded({ store: 'file:///home/me/store' })).data as Uint8Array).toString('latin1');
  expect(text).not.toMatch(/store|json/);
});

it('a payload without data can be decoded, such as the result of a workflow that returns nothing', async () => {
  // protobufjs gives an empty list for absent bytes.
  const nothing = { ...plain(undefined), data: [] as unknown as Uint8Array };
  const [payload] = await codec.encode([nothing]);
  expect(await decoded(payload as Payload)).toBe(undefined);
});

it('a payload that is plain, of another key, cut or changed is decoded to the mark, and nothing throws', async () => {
  const [other] = await payloadCodec(newPayloadKey()).encode([plain('x')]);
  for (const payload of [plain({ runId: 'r' }), plain(undefined), other as Payload, {}, { metadata: {} }])
    expect(await decoded(payload)).toEqual(foreignPayload);

  const { metadata, data } = await encoded({ runId: 'r', store: 's' });
  const whole = data as Uint8Array;
  for (let at = 0; at < whole.length; at++) {
    const changed = Uint8Array.from(whole, (byte, i) => (i === at ? byte ^ 1 : byte));
    expect(await decoded({ ...(metadata && { metadata }), data: changed })).toEqual(foreignPayload);
    expect(await decoded({ ...(metadata && { metadata }), data: whole.subarray(0, at) })).toEqual(foreignPayload);
  }
});

it('the mark differs from all values that petrel sends', () => {
  expect([foreignPayload, 'run', undefined, null, { runId: 'r', store: 's' }, []].map(isForeign)).toEqual([
    true,
    false,
    false,
    false,
    false,
    false,
  ]);
});

it('a key of another length is refused', () => {
  expect(() => payloadCodec('c2hvcnQ=')).toThrow('a payload key has 32 bytes, this has 5');
});
