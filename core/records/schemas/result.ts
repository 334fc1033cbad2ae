/** The result of a job. FORMAT.md describes it. */
import { z } from 'zod';
import { resultOf2 } from '../format2.ts';
import { formatOfBatch } from './batch.ts';
import { metricValues, recordFormat, shardedFormat, writer } from './fields.ts';

/** The result of a finished job. `output` depends on the stage; see core/wire/jobs.ts. */
export const resultRecord = z.preprocess(
  resultOf2,
  z.object({
    format: z.union([z.literal(recordFormat), z.literal(shardedFormat)]),
    jobId: z.string(),
    stage: z.string(),
    output: z.record(z.string(), z.unknown()),
    timings: metricValues,
    writer,
    /** Which process claimed the job, and its proof of that. Absent in records of the first builds. */
    claim: z.object({ incarnation: z.string(), proof: z.string() }).optional(),
  }),
);

export type ResultRecord = z.infer<typeof resultRecord>;

/** The format of a job's result: that of an advantage job holds what the batch record will hold. */
export const formatOfResult = (stage: string, output: object): typeof recordFormat | typeof shardedFormat =>
  stage === 'advantage' ? formatOfBatch(output) : recordFormat;
