import { adapterCheck } from './adapter-check.ts';
import type { Check } from './checks.ts';
import { endpointCheck } from './endpoint-check.ts';
import { engineCheck } from './engine-check.ts';
import { memoryCheck } from './memory-check.ts';
import { mixtureCheck } from './mixture-check.ts';
import { lengthsCheck, modelCheck, tokenizerCheck } from './model-check.ts';
import { ownModuleChecks } from './own-modules-check.ts';
import { trainRowsCheck, validationRowsCheck } from './rows-check.ts';
import { rewardModelCheck } from './reward-model-check.ts';
import { samplingServerCheck } from './sampling-server-check.ts';
import { scorerCheck } from './scorer-check.ts';
import { teacherCheck } from './teacher-check.ts';

/** What must be right before a run's inputs are stored, in the order in which `run` checks and `plan` shows it. */
export const startChecks: readonly Check[] = [
  modelCheck,
  memoryCheck,
  adapterCheck,
  mixtureCheck,
  lengthsCheck,
  tokenizerCheck,
  teacherCheck,
  rewardModelCheck,
  endpointCheck,
  samplingServerCheck,
  scorerCheck,
  ...ownModuleChecks,
  trainRowsCheck,
  validationRowsCheck,
  engineCheck,
];
