import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { redactor, shortestSecret } from './redact.ts';

const key = 'sk-0123456789abcdefghijklmnop';

describe('a secret in a scorer’s output', () => {
  const redact = redactor({ KEY: key, WORD: 'hunter2', LEVEL: 'prod', PEM: '-----BEGIN KEY-----\nMIIabcdef\n' });

  it('is replaced by its variable’s name, at each occurrence', () => {
    expect(redact(`401 for ${key}, again ${key}${key}!`)).toBe('401 for [env:KEY], again [env:KEY][env:KEY]!');
    expect(redact('login root:hunter2')).toBe('login root:[env:WORD]');
  });

  it('is recognised when cut off, in JSON and URL form, and line by line', () => {
    expect(redact(`got '${key.slice(0, 20)}`)).toBe("got '[env:KEY]");
    expect(redact(`…${key.slice(9)} is wrong`)).toBe('…[env:KEY] is wrong');
    const odd = redactor({ ODD: 'pass"word\\with/odd&parts' });
    expect(odd(JSON.stringify({ key: 'pass"word\\with/odd&parts' }))).toBe('{"key":"[env:ODD]"}');
    expect(odd(`https://x/?k=${encodeURIComponent('pass"word\\with/odd&parts')}`)).toBe('https://x/?k=[env:ODD]');
    expect(redact('MIIabcdef')).toBe('[env:PEM]');
  });

  it('is not replaced when it is shorter than the minimum', () => {
    expect('prod'.length).toBeLessThan(shortestSecret);
    expect(redact('in prod')).toBe('in prod');
  });

  it('is never shown, at any place (property)', () => {
    fc.assert(
      fc.property(fc.string({ minLength: shortestSecret }), fc.string(), fc.string(), (secret, before, after) => {
        const shown = redactor({ S: secret })(before + secret + after);
        expect(shown.replaceAll('[env:S]', '').includes(secret) && !'[env:S]'.includes(secret)).toBe(false);
      }),
    );
  });

  it('changes no text without one (property)', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'abc 123') }), (text) => {
        expect(redact(text)).toBe(text);
      }),
    );
  });
});
