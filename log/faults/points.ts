/**
 * Named places in the code at which a test can make a process die, stop or fail. They are one list, so that a fault at
 * an unknown place is refused. The comments list the facts of the points.
 */
export const faultPoints = [
  // A decision or a result object: facts kind (run, firing, term, batch, update, evaluation, status, result), runId,
  // iteration.
  'decide.before',
  'decide.after',
  // Control: a stage waits for its job. Facts stage, iteration, runId.
  'wait.begin',
  'wait.progress',
  'wait.end',
  // Control: publishing a job message. Facts stage, jobId, iteration, runId.
  'publish.before',
  'publish.after',
  // Control: answering a claim. Facts stage, answer, iteration, runId.
  'claim.answer',
  // Worker: a job's claim, start, committed work, result object and acknowledgement. Facts stage, jobId, iteration; of
  // its result and its start also components: those of a part of a run, or all.
  'claim.before',
  'claim.after',
  'job.begin',
  'job.progress',
  'result.before',
  'result.after',
  'ack.before',
  'ack.after',
  // Engine thread: in-place writes of a state. Facts iteration, components; of a step component, step.
  'write.dirty',
  'write.step',
  'write.sealed',
  // Engine thread: restoring a committed state. Facts iteration.
  'recover.loaded',
  'recover.replay',
  // Engine thread, and control for a manifest: checkpoints and weights. Facts iteration; of a shard also component.
  'checkpoint.shard',
  'checkpoint.manifest.before',
  'checkpoint.manifest.after',
  'weights.manifest.before',
  'weights.manifest.after',
  // Engine thread: a token of a sample. Facts runId, draw, sample, position.
  'sample.token',
  // Worker: writing partial tokens into the journal. Facts tokens.
  'journal.before',
  'journal.after',
  // Worker: some samples are scored. Facts done.
  'score.chunk',
  // Scorer process of a test's own module: before a sample is scored. Facts of its choice.
  'score.sample',
  // Janitor: between marking and removing. Facts runId.
  'janitor.marked',
  'janitor.remove',
] as const;

export type FaultPoint = (typeof faultPoints)[number];

export type FaultFacts = Readonly<Record<string, string | number>>;
