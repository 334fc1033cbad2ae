import { describe, expect, it } from 'vitest';
import { knownCards, parseMachine, usableBytes } from './cards.ts';

const gib = 2 ** 30;

describe('a stated machine', () => {
  it.each(knownCards.map(({ name }) => name))('has cards of the kind %s', (name) => {
    expect(parseMachine(`8x${name.toLowerCase()}`)).toMatchObject({ cards: 8, card: { name } });
  });

  it('has cards of which only the memory is known, and memory of its own', () => {
    expect(parseMachine('2x80GiB')).toEqual({ cards: 2, card: { name: '80GiB', bytes: 80 * gib } });
    expect(parseMachine('8xH100/2TiB')).toMatchObject({ cards: 8, hostBytes: 2048 * gib });
    expect(usableBytes({ bytes: 80 * gib })).toBe(72 * gib);
  });

  it.each([
    ['H100', /expected 1 to 65536 cards, as in 8xH100/],
    ['0xH100', /expected 1 to/],
    ['8xH101', /expected one of A100-40GB, .*, or a card's memory, as in 8x80GiB/],
    ['8x0GiB', /expected one of/],
    ['8xH100/much', /the machine’s own memory, as in 8xH100\/2TiB/],
  ])('%s is refused with what is expected', (text, message) => {
    expect(() => parseMachine(text)).toThrow(message);
  });

  it('is refused with the card that was meant', () => {
    const refused = (text: string) => expect(() => parseMachine(text));
    refused('8xH101').toThrow(expect.objectContaining({ hint: 'did you mean 8xH100?' }));
    refused('4xA100/1TiB').toThrow(expect.objectContaining({ hint: 'did you mean 4xA100-40GB/1TiB?' }));
  });
});
