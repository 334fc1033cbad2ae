/** All measurements, in the order of printing. Each is one file and one line here. */
import type { Measurement } from './measurement.ts';
import { advantageCost, lossCost } from './measurements/algorithms.ts';
import { checkpointCost } from './measurements/checkpoint.ts';
import { millionRows } from './measurements/dataset.ts';
import { decodeThroughput } from './measurements/decode.ts';
import { farStore } from './measurements/far-store.ts';
import { faultCost, faultNames } from './measurements/faults.ts';
import { throughTorch } from './measurements/fsdp.ts';
import { groupsThroughput } from './measurements/groups.ts';
import { journalCost } from './measurements/journal.ts';
import { lesson } from './measurements/lesson.ts';
import { trainMemory } from './measurements/memory.ts';
import { planRows } from './measurements/plan-rows.ts';
import { peakOfSize, peakRate, peakRead } from './measurements/peak.ts';
import { prefillThroughput } from './measurements/prefill.ts';
import { requestsOfLooks } from './measurements/requests.ts';
import { arithmeticRun } from './measurements/run.ts';
import { bucketStore, folderStore } from './measurements/store.ts';
import { trainOnOneThread, trainThroughput } from './measurements/train.ts';
import { timeToFirstToken } from './measurements/ttft.ts';
import { wholeUpdate } from './measurements/update.ts';
import { throughVllm } from './measurements/vllm.ts';
import { readInstalled } from '../infra/engines/environment.ts';
import { petrelHome } from '../infra/home.ts';
import { decodeBatches, sizeNames } from './sizes.ts';

/** The variable with the bucket to measure; the rows of S3 exist only when it is set. */
const bucket = process.env['PETREL_BENCH_S3'];

/** Engines that are installed for processors, on which their peers compute. */
const [torch, vllm] = ['torch', 'vllm'].map((engine) => readInstalled(petrelHome(), engine, 'cpu'));

export const MEASUREMENTS: readonly Measurement[] = [
  // Peaks come first: other rows are shown as a share of them.
  peakRate,
  peakRead,
  ...sizeNames.map(peakOfSize),
  ...sizeNames.map(trainThroughput),
  ...sizeNames.map(groupsThroughput),
  ...sizeNames.map(trainOnOneThread),
  ...sizeNames.map(trainMemory),
  ...sizeNames.map(wholeUpdate),
  ...sizeNames.map(prefillThroughput),
  ...sizeNames.flatMap((size) => decodeBatches.map((batch) => decodeThroughput(size, batch))),
  ...sizeNames.map(timeToFirstToken),
  advantageCost,
  lossCost,
  checkpointCost('M'),
  journalCost,
  arithmeticRun,
  lesson,
  ...faultNames.map(faultCost),
  folderStore,
  requestsOfLooks,
  millionRows,
  planRows,
  ...(torch === undefined ? [] : [throughTorch(torch)]),
  ...(vllm === undefined ? [] : [throughVllm(vllm)]),
  ...(bucket === undefined ? [] : [bucketStore(bucket), farStore(bucket)]),
];
