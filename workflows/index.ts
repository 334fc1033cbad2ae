/** Everything that is bundled for the workflow sandbox. */
export { trainRun } from './train-run.ts';
export { sftRun } from './sft-run.ts';
export { scheduledRun } from './scheduled-run.ts';
export { keepFleet } from './keep-fleet.ts';
export { janitor } from './janitor.ts';
