/** Prints what this machine's engine is and proves, for programs that do not load an engine: infra/engine-proof.ts. */
import { engineInfo } from './engine-info.ts';
import { nativeFacts } from './facts.ts';

process.stdout.write(JSON.stringify({ ...nativeFacts(), addedFlags: engineInfo().addedFlags }));
