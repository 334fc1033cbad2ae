/** What an attached command shows of a stage's job. */
export function liveNote(
  stage: string,
  iteration: number,
  progress: { readonly done: number; readonly total: number; readonly note: string } | undefined,
  queued: string | undefined,
) {
  return {
    stage,
    iteration,
    done: progress?.done ?? 0,
    total: progress?.total ?? 0,
    note: progress?.note ?? '',
    ...(queued === undefined ? {} : { queued }),
  };
}
