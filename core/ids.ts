/** Ids of runs, jobs and objects. A run's name may be reused; its id is unique. */

/** `<name>-<yyyymmdd-hhmmss>-<4 hex>`; claimed by creating `runs/<runId>/run.json`. */
export type RunId = string;
/** `<stage>-<first 32 hex of the digest of its inputs>`. Equal inputs give the same job, for every caller. */
export type JobId = string;
/** SHA-256 in lower-case hex. */
export type Digest = string;

export const runNamePattern = /^[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?$/;
export const runIdPattern = /^([a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?)-(\d{8}-\d{6})-([0-9a-f]{4})$/;
export const digestPattern = /^[0-9a-f]{64}$/;

/** The nearest name that a run may have: `My_Run 2` becomes `my-run-2`. undefined when nothing of the text is left. */
export function nearestRunName(text: string): string | undefined {
  const name = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, 40)
    .replace(/-+$/, '');
  return name === '' ? undefined : name;
}

/** `when` in UTC; `nonce` is four hex digits. */
export function makeRunId(name: string, when: Date, nonce: string): RunId {
  const iso = when.toISOString();
  const day = iso.slice(0, 10).replaceAll('-', '');
  const time = iso.slice(11, 19).replaceAll(':', '');
  return `${name}-${day}-${time}-${nonce}`;
}

/** The name in a run id; undefined when the text is not a run id. */
export function runNameOf(runId: string): string | undefined {
  return runIdPattern.exec(runId)?.[1];
}

export function makeJobId(stage: string, inputsDigest: Digest): JobId {
  return `${stage}-${inputsDigest.slice(0, 32)}`;
}
