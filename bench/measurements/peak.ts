/**
 * The machine's own peak: the tokens per second that the products of a row would allow, and how fast memory is read.
 */
import { peakProductSeconds, readSeconds } from '../../native/index.ts';
import type { BenchSettings, Measurement } from '../measurement.ts';
import { decodingProducts, operationsOf, prefillProducts, trainingProducts } from '../matrix-products.ts';
import type { MatrixProduct, ProductsOfWork } from '../matrix-products.ts';
import { decodeBatches, prefillPrompts, sizeOf } from '../sizes.ts';
import type { Size, SizeName } from '../sizes.ts';

/** The shapes of `size`: `peak.gemm.S.train` belongs to `train.S.throughput`, `peak.gemm.S.b16` to `decode.S.b16`. */
export function peakOfSize(size: SizeName): Measurement {
  const name = `peak.gemm.${size}`;
  return {
    name,
    rows: Object.keys(worksOf(sizeOf(size, true))).map((work) => ({ name: `${name}.${work}`, unit: 'tokens/s' })),
    turns: 5,
    async open(settings) {
      const works = Object.entries(worksOf(sizeOf(size, settings.quick)));
      return {
        about: 'register tiles with operands in the first-level cache',
        turn: async () =>
          Object.fromEntries(works.map(([work, products]) => [`${name}.${work}`, tokensPerSecond(products, settings)])),
        close: async () => {},
      };
    },
  };
}

function worksOf(size: Size): Readonly<Record<string, ProductsOfWork>> {
  return {
    train: trainingProducts(size),
    prefill: prefillProducts(size, prefillPrompts),
    ...Object.fromEntries(decodeBatches.map((batch) => [`b${batch}`, decodingProducts(size, batch)])),
  };
}

/** The rate of a large product, for comparison with other programs. */
export const peakRate: Measurement = {
  name: 'peak.rate',
  rows: [{ name: 'peak.rate', unit: 'GFLOP/s' }],
  turns: 5,
  open: async (settings) => ({
    about: 'a product of 384 × 768 × 4096',
    turn: async () => ({ 'peak.rate': rateOf({ m: 384, n: 768, k: 4096, count: 1 }, settings) / 1e9 }),
    close: async () => {},
  }),
};

/** Far more than any cache holds. */
const readMiB = 512;

export const peakRead: Measurement = {
  name: 'peak.read',
  rows: [{ name: 'peak.read', unit: 'bytes/s' }],
  turns: 9,
  async open({ threads, quick }) {
    const ones = new Float32Array((quick ? 1 : readMiB) * 2 ** 18).fill(1);
    return {
      about: `${ones.byteLength / 2 ** 20} MiB read by ${threads} threads`,
      turn: async () => ({ 'peak.read': ones.byteLength / fastest(() => readSeconds(ones, threads)) }),
      close: async () => {},
    };
  },
};

function tokensPerSecond({ tokens, products }: ProductsOfWork, settings: BenchSettings): number {
  const seconds = products.map((product) => operationsOf(product) / rateOf(product, settings));
  return tokens / seconds.reduce((sum, each) => sum + each, 0);
}

/** More rows, columns or depth than this do not change the rate, because no operand comes from memory. */
const most = { m: 384, n: 768, k: 4096 } as const;

/** Operations per second of all threads. Repeats the product until it takes long enough to be measured. */
function rateOf(product: MatrixProduct, { precision, threads, quick }: BenchSettings): number {
  const part: MatrixProduct = {
    m: Math.min(product.m, most.m),
    n: Math.min(product.n, most.n),
    k: Math.min(product.k, most.k),
    count: 1,
  };
  const enough = quick ? 0.0005 : 0.02;
  for (let repeats = 8 * threads; ; repeats *= 2) {
    const seconds = () => peakProductSeconds({ ...part, compute: precision, threads, repeats });
    if (seconds() >= enough) return (operationsOf(part) * repeats) / fastest(seconds);
  }
}

/** Other work on the machine can only make a peak look smaller. */
const fastest = (seconds: () => number): number => Math.min(seconds(), seconds(), seconds());
