import type { Check } from './checks.ts';
import { roomCheck, storeCheck, workersCheck } from './machine-checks.ts';
import { startChecks } from './start-checks.ts';

/** What `plan` shows: the checks of `run`, then those of this machine. */
export const planChecks: readonly Check[] = [...startChecks, storeCheck, roomCheck, workersCheck];
