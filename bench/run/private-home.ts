/** A separate PETREL_HOME for the bench, with the tools of the real one, so that its stack meets no other stack. */
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { petrelHome } from '../../infra/home.ts';
import { stopStack } from '../../infra/stack/index.ts';

export interface PrivateHome {
  readonly home: string;
  /** Stops its stack and deletes the home. */
  remove(): Promise<void>;
}

export function privateHome(): PrivateHome {
  const home = mkdtempSync(join(tmpdir(), 'petrel-bench-'));
  symlinkSync(join(petrelHome(), 'toolchain'), join(home, 'toolchain'));
  return {
    home,
    async remove() {
      await stopStack(home);
      rmSync(home, { recursive: true, force: true, maxRetries: 3 });
    },
  };
}
