/** Checks of this machine: the store, the servers, room on the disks, workers that are there. */
import { counted } from '../../core/quantities.ts';
import { fullPlaces } from '../../infra/stack/admission.ts';
import { requireSetUp } from '../../infra/stack/index.ts';
import { openLiveSource } from '../live-source.ts';
import { tryStoreForNewRun } from '../stores/new-store.ts';
import type { Check } from './checks.ts';

export const storeCheck: Check = {
  name: 'store',
  look: async ({ recipe, ports }) => {
    const { url } = await tryStoreForNewRun(recipe.store, ports.home);
    return { detail: `${url}: can be written to and listed` };
  },
};

/** Warns of too little room, which pauses a run but does not stop it from being started. */
export const roomCheck: Check = {
  name: 'room',
  look: async ({ ports }) => {
    const full = await fullPlaces([], ports.home);
    if (full.length === 0) return undefined;
    return { status: 'warning', detail: full.map(({ message }) => message).join('; ') };
  },
};

/** The stack's programs are there. When it is up, its workers say how they are. */
export const workersCheck: Check = {
  name: 'workers',
  look: async ({ ports }) => {
    requireSetUp(ports.home);
    const live = await openLiveSource(ports.home);
    try {
      if (live.stack === undefined) return { detail: 'the run starts them with the stack' };
      const workers = await live.workers();
      const sick = workers.filter(({ state }) => state === 'unhealthy');
      if (sick.length === 0)
        return { detail: `${counted(workers.length, 'worker')} ${workers.length === 1 ? 'is' : 'are'} there` };
      const texts = sick.map(
        ({ worker, lastError }) => `${worker} is unhealthy${lastError ? `: ${lastError.message}` : ''}`,
      );
      return { status: 'warning', detail: texts.join('; ') };
    } finally {
      await live.close();
    }
  },
};
