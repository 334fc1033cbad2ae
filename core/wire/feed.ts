/**
 * Messages of the feed of a run (core/run-feed.ts): the control process publishes what is new, and answers viewers that
 * ask from their place. What they say is in the store; a lost message costs time only.
 */
import { z } from 'zod';
import type { RunId } from '../ids.ts';
import { metricValues } from '../records/schema.ts';
import { runStates } from '../run-states.ts';
import { wireVersion } from './messages.ts';

const version = z.literal(wireVersion);
const position = z.int().nonnegative();

const feedPlace = z.object({ status: position, term: position, iteration: position, validated: z.int().min(-1) });
const measured = z.object({ metrics: metricValues, timings: metricValues });

const news = z.object({
  from: feedPlace,
  to: feedPlace,
  base: position,
  status: z
    .object({
      n: position,
      state: z.enum(runStates),
      reason: z
        .object({
          code: z.string(),
          message: z.string(),
          hint: z.string().optional(),
          where: z.string().optional(),
        })
        .optional(),
    })
    .optional(),
  owner: z.string().optional(),
  iterations: z.array(
    z.object({
      iteration: position,
      term: position,
      at: z.string(),
      given: z.boolean(),
      batch: measured,
      update: measured,
    }),
  ),
  validations: z.array(measured.extend({ iteration: position, term: position, accuracy: z.number() })),
});

/** Control → viewers. */
export const feedNews = news.extend({ v: version });

/** Viewer → the control process that drives the run (request). */
export const feedAsk = z.object({ v: version, store: z.string(), place: feedPlace });

/** `older`: the viewer reads the store once, and goes on. `unknown`: nobody here drives the run. */
export const feedAnswer = z.discriminatedUnion('answer', [
  z.object({ v: version, answer: z.literal('news'), news }),
  z.object({ v: version, answer: z.enum(['older', 'unknown']) }),
]);
export type FeedAnswer = z.infer<typeof feedAnswer>;

export const feedSubject = (runId: RunId) => `feed.news.${runId}`;
export const feedAskSubject = (runId: RunId) => `feed.ask.${runId}`;
export const feedAsksSubject = 'feed.ask.*';
