import type { Check } from './checks.ts';
import { endpointCheck } from './endpoint-check.ts';
import { engineCheck } from './engine-check.ts';
import { lengthsCheck, modelCheck, tokenizerCheck } from './model-check.ts';
import { ownModuleChecks } from './own-modules-check.ts';
import { trainRowsCheck, validationRowsCheck } from './rows-check.ts';
import { rewardModelCheck } from './reward-model-check.ts';
import { scorerCheck } from './scorer-check.ts';
import { teacherCheck } from './teacher-check.ts';

/** What must be right before a run's inputs are stored, in the order in which `run` checks and `plan` shows it. */
export const startChecks: readonly Check[] = [
  modelCheck,
  lengthsCheck,
  tokenizerCheck,
  teacherCheck,
  rewardModelCheck,
  endpointCheck,
  scorerCheck,
  ...ownModuleChecks,
  trainRowsCheck,
  validationRowsCheck,
  engineCheck,
];
