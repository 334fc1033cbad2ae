/** Names that the two processes of the bare loop share. */
export const bareTaskQueue = 'bench-bare';
export const bareStream = 'BENCH_BARE';
export const bareConsumer = 'responder';
export const bareSubject = 'bench.bare.job';
export const doneSubject = (job: string): string => `bench.bare.done.${job}`;

/** The minimum that one iteration of the real loop needs. */
export const activitiesPerIteration = 4;
export const jobsPerIteration = 3;
export const createsPerIteration = 6;
