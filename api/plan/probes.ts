import { modelProbe } from './model-probe.ts';
import { trainRowsProbe, validationRowsProbe } from './rows-probe.ts';
import { scorerProbe } from './scorer-probe.ts';
import type { Probe } from './checks.ts';

/** What `plan` looks at, in the order it is shown. */
export const probes: readonly Probe[] = [modelProbe, trainRowsProbe, validationRowsProbe, scorerProbe];
