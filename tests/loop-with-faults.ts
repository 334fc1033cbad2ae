/** A loop whose processes stop, die or fail at armed points of the code. */
import { join } from 'node:path';
import { afterAll, afterEach } from 'vitest';
import { faultsVariable } from '../log/faults/index.ts';
import { Injector } from './inject.ts';
import { LoopUnderTest } from './loop-under-test.ts';

/**
 * Makes the loop of a test file, and its injector. The processes of a stack that is started after this call know the
 * injector. After each test no fault is armed. After the last one the loop is removed, which verifies every ledger with
 * all tensors. `variables`: further ones of the processes.
 */
export function loopWithFaults(
  variables: Readonly<Record<string, string>> = {},
  loop = new LoopUnderTest(),
): { readonly loop: LoopUnderTest; readonly injector: Injector; readonly faults: string } {
  const faults = join(loop.home, 'faults');
  const injector = new Injector(loop.home, faults);
  const given = { ...variables, [faultsVariable]: faults };
  Object.assign(process.env, given);
  afterEach(() => injector.disarmAll());
  afterAll(async () => {
    for (const name of Object.keys(given)) delete process.env[name];
    injector.close();
    await loop.remove();
  });
  return { loop, injector, faults };
}
