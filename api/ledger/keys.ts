/**
 * The keys of a run's objects, from core/records/FORMAT.md. They are written a second time here, because the verifier
 * shares no code with the writers.
 */

export interface LedgerKeys {
  readonly run: string;
  readonly removed: string;
  readonly terms: string;
  readonly statuses: string;
  readonly checkpoints: string;
  readonly weights: string;
  readonly columns: string;
  revision(n: number): string;
  status(n: number): string;
  retention(n: number): string;
  readonly results: string;
  readonly retentions: string;
  term(t: number): string;
  positions(t: number): string;
  batch(t: number, k: number): string;
  update(t: number, k: number): string;
  evaluation(t: number, k: number): string;
  result(jobId: string): string;
  blob(digest: string): string;
}

export function ledgerKeys(runId: string): LedgerKeys {
  const root = `runs/${runId}`;
  const term = (t: number) => `${root}/terms/${t}`;
  return {
    run: `${root}/run.json`,
    removed: `${root}/removed.json`,
    terms: `${root}/terms/`,
    statuses: `${root}/status/`,
    checkpoints: `${root}/checkpoints/`,
    weights: `${root}/weights/`,
    columns: `${root}/columns/`,
    revision: (n) => `${root}/revisions/${n}.json`,
    results: `${root}/results/`,
    retentions: `${root}/retention/`,
    retention: (n) => `${root}/retention/${n}.json`,
    status: (n) => `${root}/status/${n}.json`,
    term: (t) => `${term(t)}/term.json`,
    positions: (t) => `${term(t)}/`,
    batch: (t, k) => `${term(t)}/${k}/batch.json`,
    update: (t, k) => `${term(t)}/${k}/update.json`,
    evaluation: (t, k) => `${term(t)}/${k}/eval.json`,
    result: (jobId) => `${root}/results/${jobId}.json`,
    blob: (digest) => `${root}/blobs/${digest}`,
  };
}
