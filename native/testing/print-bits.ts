/** Prints what this process is and which bits it gives: the program behind `bitsOf`. */
import { engineInfo } from '../index.ts';
import { probeDigests } from '../proof/index.ts';
import { computeBits } from './bits.ts';
import type { PrintedBits } from './bits.ts';

const printed: PrintedBits = { info: engineInfo(), bits: computeBits(), probes: probeDigests() };
process.stdout.write(JSON.stringify(printed));
