/** A term: what a run begins or goes on with. FORMAT.md describes it. */
import { z } from 'zod';
import { termOf2 } from '../format2.ts';
import { count, counters, digest, drawRange, perComponent, recordFormat, writer } from './fields.ts';
import { componentState, numericProfile } from './profile.ts';

export const termRecord = z.preprocess(
  termOf2,
  z.object({
    format: z.literal(recordFormat),
    runId: z.string(),
    term: z.int().positive(),
    /**
     * The start of a term: the record of a committed position, its digest, and the term that holds it. Undefined for
     * the first term.
     */
    parent: z.object({ term: z.int().positive(), position: count, record: digest }).optional(),
    /**
     * Only in the first term of a fork, which continues its origin's numbering. Absent: position 0, all counters zero.
     */
    base: z.object({ position: count, counters }).optional(),
    /**
     * The earlier terms of the log, newest first: [term, position where it starts, recipe revision]. Absent in older
     * records, whose readers follow `parent` from term to term.
     */
    lineage: z.array(z.tuple([z.int().positive(), count, z.int().positive()])).optional(),
    /** State at the position where the term starts: FORMAT.md, "Digests of a state". */
    startState: digest,
    /** The same of each component, and the arithmetic that computes it. */
    components: perComponent(componentState.extend({ profile: numericProfile })),
    /** The recipe revision of the term's batches. */
    revision: z.int().positive().default(1),
    /** The stack that drives the run: only its control processes append to this term. */
    owner: z.string(),
    reason: z.string(),
    /**
     * Iterations after this term's position up to `until` apply batches again that an earlier term committed; the new
     * batch records are copies of those in the log that ends with `term`. For a term that starts with another state
     * than the log had, or with another arithmetic.
     */
    adopts: z.object({ term: z.int().positive(), until: count }).optional(),
    /**
     * The term starts with the state of a trainer that followed the run, which is not that of the parent: it has
     * applied the same batches and got other last bits. `result`: id of the update job that names this state.
     */
    standby: z.object({ result: z.string() }).optional(),
    /** Draw numbers that no batch of this term uses: half-open ranges, ascending. */
    skippedDraws: z.array(drawRange),
    writer,
  }),
);

export type TermRecord = z.infer<typeof termRecord>;
