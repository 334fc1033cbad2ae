/** Everything that is measured, in the order it is printed. One file and one line each. */
import type { Measurement } from './measurement.ts';
import { checkpointCost } from './measurements/checkpoint.ts';
import { millionRows } from './measurements/dataset.ts';
import { decodeBatches, decodeThroughput } from './measurements/decode.ts';
import { faultCost, faultNames } from './measurements/faults.ts';
import { journalCost } from './measurements/journal.ts';
import { trainMemory } from './measurements/memory.ts';
import { requestsOfLooks } from './measurements/requests.ts';
import { arithmeticRun } from './measurements/run.ts';
import { bucketStore, folderStore } from './measurements/store.ts';
import { trainThroughput } from './measurements/train.ts';
import { timeToFirstToken } from './measurements/ttft.ts';
import { sizeNames } from './sizes.ts';

/** Where to measure S3: its rows are there when this names a place in a bucket. */
const bucket = process.env['PETREL_BENCH_S3'];

export const MEASUREMENTS: readonly Measurement[] = [
  ...sizeNames.map(trainThroughput),
  ...sizeNames.map(trainMemory),
  ...sizeNames.flatMap((size) => decodeBatches.map((batch) => decodeThroughput(size, batch))),
  ...sizeNames.map(timeToFirstToken),
  checkpointCost('M'),
  journalCost,
  arithmeticRun,
  ...faultNames.map(faultCost),
  folderStore,
  requestsOfLooks,
  millionRows,
  ...(bucket === undefined ? [] : [bucketStore(bucket)]),
];
