/**
 * Named places in the code at which a test may make a process die, stand still or fail. One list, so that a plan of
 * faults that names no real place is refused. The facts that come with a point are those behind its name.
 */
export const faultPoints = [
  // A decision or a result object: facts kind (run, firing, term, batch, update, evaluation, status, result), runId, iteration.
  'decide.before',
  'decide.after',
  // Control: a stage's wait. Facts stage, iteration, runId.
  'wait.begin',
  'wait.progress',
  'wait.end',
  // Control: a job message into the queue. Facts stage, jobId, iteration, runId.
  'publish.before',
  'publish.after',
  // Control: the answer to a claim. Facts stage, answer, iteration, runId.
  'claim.answer',
  // Worker: asking for a job, having it, its committed work, its result object, its acknowledgement. Facts stage, jobId, iteration.
  'claim.before',
  'claim.after',
  'job.begin',
  'job.progress',
  'result.before',
  'result.after',
  'ack.before',
  'ack.after',
  // Engine thread: in-place writes of the policy. Facts iteration, step.
  'write.dirty',
  'write.step',
  'write.sealed',
  // Engine thread: getting to a committed state. Facts iteration.
  'recover.loaded',
  'recover.replay',
  // Engine thread: checkpoints and weights. Facts iteration.
  'checkpoint.shard',
  'checkpoint.manifest.before',
  'checkpoint.manifest.after',
  'weights.manifest.before',
  'weights.manifest.after',
  // Engine thread: a token of a sample. Facts runId, draw, sample, position.
  'sample.token',
  // Worker: partial tokens into the journal. Facts tokens.
  'journal.before',
  'journal.after',
  // Worker: scores of some samples are there. Facts done.
  'score.chunk',
  // Scorer process of a test's own module: a sample to score. Facts of its choice.
  'score.sample',
  // Janitor: between marking and removing. Facts runId.
  'janitor.marked',
  'janitor.remove',
] as const;

export type FaultPoint = (typeof faultPoints)[number];

export type FaultFacts = Readonly<Record<string, string | number>>;
