/**
 * A state machine, without I/O and clock, that tells what became of workers from what they announce. Each process joins
 * once, gets at most one notice, and is lost at most once. A worker that joins takes the place of one with the same
 * roles that was lost or told to leave in the last ten minutes: the one at its own place if there is one, else the
 * first.
 */
import type { Presence } from '../wire/messages.ts';
import type { WorkerEvent } from '../wire/worker-event.ts';
import { placeWords } from '../wire/worker-identity.ts';
import type { WorkerIdentity } from '../wire/worker-identity.ts';

/** A worker that comes later than this is no successor. */
const vacantMs = 600_000;

export type AnnouncedWorker = Pick<
  Presence,
  'instance' | 'worker' | 'incarnation' | 'predecessorEnded' | 'roles' | 'state' | 'atRisk'
>;

interface Known {
  readonly entry: AnnouncedWorker;
  readonly heard: number;
  /** It was told to leave, or its machine is given back: then its end is no loss. */
  readonly leaves: boolean;
}

interface Vacancy {
  readonly entry: AnnouncedWorker;
  readonly since: number;
}

export class WorkerEvents {
  readonly #tell: (event: WorkerEvent) => void;
  /** Workers that are known, by place. */
  readonly #known = new Map<string, Known>();
  #vacant: Vacancy[] = [];

  constructor(tell: (event: WorkerEvent) => void) {
    this.#tell = tell;
  }

  /** Workers that are there. */
  get count(): number {
    return this.#known.size;
  }

  /** This worker was there before this process watched. */
  found(entry: AnnouncedWorker, now: number): void {
    this.#known.set(placeWords(entry), { entry, heard: now, leaves: isLeaving(entry) });
  }

  /** A worker has announced itself, for the first time or again. */
  heard(entry: AnnouncedWorker, now: number): void {
    const place = placeWords(entry);
    const before = this.#known.get(place);
    const isSame = before?.entry.incarnation === entry.incarnation;
    if (before !== undefined && !isSame) this.#gone(before, now, entry.predecessorEnded);
    const leaves = isSame && before.leaves;
    this.#known.set(place, { entry, heard: now, leaves: leaves || isLeaving(entry) });
    if (!isSame) this.#joined(entry, now);
    if (!leaves && isLeaving(entry)) {
      this.#tell({ type: 'notice', ...factsOf(entry), because: whyLeaving(entry) });
      this.#vacate(entry, now);
    }
  }

  /** The connection of this process has closed. */
  lost({ incarnation, ...place }: WorkerIdentity, now: number): void {
    const known = this.#known.get(placeWords(place));
    if (known?.entry.incarnation !== incarnation) return;
    this.#known.delete(placeWords(place));
    this.#gone(known, now, 'its connection closed');
  }

  /** The fleet gives this machine back: that is no notice, and nobody replaces its workers. */
  givenBack(instance: string): void {
    for (const [place, known] of this.#known)
      if (known.entry.instance === instance) this.#known.set(place, { ...known, leaves: true });
  }

  /** Nobody could be heard until now, so nobody was silent. */
  deafUntil(now: number): void {
    for (const [place, known] of this.#known) this.#known.set(place, { ...known, heard: now });
  }

  /** Workers that were silent since `then` are gone; for servers that do not tell whose connection has closed. */
  expire(then: number, now: number): void {
    for (const [place, known] of this.#known) {
      if (known.heard >= then) continue;
      this.#known.delete(place);
      this.#gone(known, now, 'it is silent');
    }
  }

  #joined(entry: AnnouncedWorker, now: number): void {
    this.#tell({ type: 'joined', ...factsOf(entry) });
    const place = placeWords(entry);
    const vacant = this.#vacant.filter(
      ({ entry: before, since }) => sameRoles(before, entry) && now - since < vacantMs,
    );
    const filled = vacant.find(({ entry: before }) => placeWords(before) === place) ?? vacant[0];
    if (filled === undefined) return;
    this.#vacant = this.#vacant.filter((one) => one !== filled);
    const { instance, worker } = entry;
    this.#tell({ type: 'replaced', ...factsOf(filled.entry), by: { instance, worker } });
  }

  #gone({ entry, leaves }: Known, now: number, because = 'it vanished'): void {
    if (leaves) return;
    this.#tell({ type: 'lost', ...factsOf(entry), because });
    this.#vacate(entry, now);
  }

  #vacate(entry: AnnouncedWorker, now: number): void {
    this.#vacant = [...this.#vacant.filter(({ since }) => now - since < vacantMs), { entry, since: now }];
  }
}

const isLeaving = ({ state, atRisk }: AnnouncedWorker): boolean => state === 'draining' || atRisk === true;

const whyLeaving = ({ state }: AnnouncedWorker): string =>
  state === 'draining' ? 'it was told to leave' : 'its cloud expects to take the machine back';

const factsOf = ({ instance, worker, incarnation, roles }: AnnouncedWorker) => ({
  instance,
  worker,
  incarnation,
  roles: [...roles],
});

const sameRoles = (a: AnnouncedWorker, b: AnnouncedWorker): boolean =>
  [...a.roles].sort().join() === [...b.roles].sort().join();
