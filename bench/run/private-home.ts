/** A PETREL_HOME of the bench's own, with the tools of the real one: its stack meets nobody else's. */
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { petrelHome } from '../../infra/home.ts';
import { stopStack } from '../../infra/stack/index.ts';

export interface PrivateHome {
  readonly home: string;
  /** Ends its stack and deletes it. */
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
