/** Prints what this machine's engine is and proves, for programs that do not load an engine: infra/engine-proof.ts. */
import { engineInfo } from '../engine-info.ts';
import { engineProofs } from './index.ts';

const { isa, build, addedFlags } = engineInfo();
process.stdout.write(JSON.stringify({ isa, build, addedFlags, proofs: engineProofs() }));
