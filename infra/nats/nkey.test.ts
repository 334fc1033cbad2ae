import { nkeys } from '@nats-io/nats-core';
import { expect, it } from 'vitest';
import { natsAuthenticator, newNatsKey, publicNkey } from './nkey.ts';

it('makes public keys and signatures that the NATS library reads and verifies', () => {
  for (let i = 0; i < 20; i++) {
    const key = newNatsKey();
    const nonce = `challenge-${i}`;
    const auth = natsAuthenticator({ key, jwt: 'j' })(nonce) as { nkey: string; sig: string };
    expect(auth.nkey).toBe(publicNkey(key));
    const reader = nkeys.fromPublic(auth.nkey);
    const signature = new Uint8Array(Buffer.from(auth.sig, 'base64url'));
    expect(reader.verify(new TextEncoder().encode(nonce), signature)).toBe(true);
    expect(reader.verify(new TextEncoder().encode('another'), signature)).toBe(false);
  }
});
