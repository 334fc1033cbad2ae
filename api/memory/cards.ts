/**
 * Cards that a plan knows, and the machine that it is asked about: `8xH100`, `8x80GiB`, `8xH100/2TiB`.
 *
 * Memory, dense bf16 products without sparsity, and bandwidth are those of the makers' datasheets: NVIDIA A100 (2021),
 * H100 SXM (2023), H200 SXM (2024), L40S (2023), HGX B200 (2025); AMD Instinct MI300X (2023).
 */
import { InvalidInputError } from '../../core/errors.ts';
import { nearest } from '../../core/nearest.ts';

export interface Card {
  readonly name: string;
  readonly bytes: number;
  /** Operations per second of dense products in bf16. Absent for a card of which only the memory is stated. */
  readonly peakFlops?: number;
  /** Bytes per second between the card and its memory. */
  readonly bandwidth?: number;
}

export interface StatedMachine {
  readonly card: Card;
  readonly cards: number;
  /** The machine's own memory; absent: not stated. */
  readonly hostBytes?: number;
}

/**
 * Share of a card's memory that stays free: its driver's context, and gaps between allocations. vLLM leaves as much.
 */
const freeShare = 0.1;

/** Bytes of a card that a run may use. */
export const usableBytes = ({ bytes }: Pick<Card, 'bytes'>): number => (1 - freeShare) * bytes;

const gib = 2 ** 30;

const card = (name: string, memoryGib: number, teraFlops: number, gigabytesPerSecond: number): Card => ({
  name,
  bytes: memoryGib * gib,
  peakFlops: teraFlops * 1e12,
  bandwidth: gigabytesPerSecond * 1e9,
});

export const knownCards: readonly Card[] = [
  card('A100-40GB', 40, 312, 1_555),
  card('A100-80GB', 80, 312, 2_039),
  card('H100', 80, 989, 3_350),
  card('H200', 141, 989, 4_800),
  card('L40S', 48, 362, 864),
  card('B200', 180, 2_250, 8_000),
  card('MI300X', 192, 1_307, 5_300),
];

const mostCards = 65_536;

/** Throws InvalidInputError that says how a machine is written. */
export function parseMachine(text: string): StatedMachine {
  const [, count = '', name = '', host] = /^(\d+)x([^/]+)(?:\/(.+))?$/i.exec(text) ?? [];
  const cards = Number(count);
  if (!(cards >= 1 && cards <= mostCards)) throw refuse(text, `1 to ${mostCards} cards, as in 8xH100`);
  const hostBytes = host === undefined ? undefined : bytesOf(host);
  if (host !== undefined && hostBytes === undefined) throw refuse(text, 'the machine’s own memory, as in 8xH100/2TiB');
  return { card: cardOf(name, text), cards, ...(hostBytes !== undefined && { hostBytes }) };
}

function cardOf(name: string, text: string): Card {
  const known = knownCards.find((one) => one.name.toLowerCase() === name.toLowerCase());
  if (known !== undefined) return known;
  const bytes = bytesOf(name);
  if (bytes !== undefined) return { name, bytes };
  const names = knownCards.map((one) => one.name);
  const meant = names.find((one) => one.toLowerCase().startsWith(name.toLowerCase())) ?? nearest(name, names);
  throw refuse(text, `one of ${names.join(', ')}, or a card's memory, as in 8x80GiB`, meant);
}

function bytesOf(text: string): number | undefined {
  const [, number, unit = ''] = /^(\d+(?:\.\d+)?)(GiB|GB|TiB|TB)$/i.exec(text) ?? [];
  if (number === undefined || Number(number) === 0) return undefined;
  return Number(number) * (unit.toLowerCase().startsWith('t') ? 1024 : 1) * gib;
}

const refuse = (text: string, expected: string, meant?: string): InvalidInputError =>
  new InvalidInputError(`--machine ${text}: expected ${expected}`, {
    where: '--machine',
    ...(meant !== undefined && { hint: `did you mean ${text.replace(/x[^/]+/i, `x${meant}`)}?` }),
  });
