import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Presence } from '../../../core/wire/messages.ts';
import { identityText } from '../../../core/wire/worker-identity.ts';
import type { WorkerIdentity } from '../../../core/wire/worker-identity.ts';
import type { Choice } from './choices.ts';
import { mostSends, Sending } from './sending.ts';

const declinedMs = 3_000;

/** Two processes, one after the other, at each of two places. */
const workers: readonly WorkerIdentity[] = ['a', 'b'].flatMap((worker) =>
  ['first', 'second'].map((process) => ({ instance: 'here', worker, incarnation: `${worker}-${process}` })),
);
const arbitraryWorker = fc.constantFrom(...workers);
const choice = (to: WorkerIdentity, only: boolean): Choice => ({ to: to as Presence, only });

/** What happens to a message. The session makes these calls in any order, because claims, events and timers race. */
type Happening =
  | { readonly type: 'goesTo'; readonly worker: WorkerIdentity | undefined }
  | { readonly type: 'received' | 'refused'; readonly worker: WorkerIdentity }
  | {
      readonly type: 'unconfirmed';
      readonly worker: WorkerIdentity;
      readonly only: boolean;
      readonly isPresent: boolean;
    }
  | { readonly type: 'isInQueue' | 'wasInQueue'; readonly place: number }
  | { readonly type: 'hurry' | 'delay' | 'delayOver' | 'started' }
  | { readonly type: 'later'; readonly ms: number };

const is = <T extends string>(...types: readonly T[]) => fc.constantFrom(...types);
const place = fc.integer({ min: 1, max: 50 });
const happening: fc.Arbitrary<Happening> = fc.oneof(
  fc.record({ type: is('goesTo'), worker: fc.option(arbitraryWorker, { nil: undefined }) }),
  fc.record({ type: is('received', 'refused'), worker: arbitraryWorker }),
  fc.record({ type: is('unconfirmed'), worker: arbitraryWorker, only: fc.boolean(), isPresent: fc.boolean() }),
  fc.record({ type: is('isInQueue', 'wasInQueue'), place }),
  fc.record({ type: is('hurry', 'delay', 'delayOver', 'started') }),
  fc.record({ type: is('later'), ms: fc.integer({ min: 1, max: declinedMs }) }),
);

function play(sending: Sending, event: Happening, now: number): boolean | undefined {
  switch (event.type) {
    case 'goesTo':
      return void sending.goesTo(event.worker);
    case 'received':
      return void sending.received(event.worker);
    case 'refused':
      return sending.refused(event.worker, now);
    case 'unconfirmed':
      return sending.unconfirmed(choice(event.worker, event.only), event.isPresent, now);
    case 'isInQueue':
    case 'wasInQueue':
      return void sending[event.type](event.place);
    case 'hurry':
    case 'delay':
    case 'delayOver':
      return void sending[event.type]();
    case 'started':
      return sending.started();
    case 'later':
      return undefined;
  }
}

/** Everything that can be seen of a message. */
const seen = (sending: Sending, now: number) => ({
  sentTo: workers.filter((worker) => sending.isSentTo(worker, worker.incarnation)),
  place: sending.place,
  receivedBy: sending.receivedBy,
  declined: sending.declined(now),
  isUrgent: sending.isUrgent,
  isDelayed: sending.isDelayed,
});

/** Plays random histories; `check` sees each event with what could be seen before and after it. */
function inEveryHistory(
  seed: number,
  check: (event: Happening, answer: boolean | undefined, before: Seen, after: Seen, now: number) => void,
): void {
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 40, size: 'max' }), (events) => {
      const sending = new Sending(declinedMs);
      let now = 0;
      for (const event of events) {
        if (event.type === 'later') now += event.ms;
        const before = seen(sending, now);
        const answer = play(sending, event, now);
        check(event, answer, before, seen(sending, now), now);
      }
    }),
    { seed, numRuns: 300 },
  );
}

type Seen = ReturnType<typeof seen>;

describe('the message of a job', () => {
  it('goes to one process or to the queue, and then neither hurries nor has its earlier place (seed 1)', () => {
    inEveryHistory(1, (event, _, before, after) => {
      expect(after.sentTo.length).toBeLessThanOrEqual(1);
      if (event.type !== 'goesTo') return;
      expect(after).toMatchObject({ place: undefined, isUrgent: false, isDelayed: before.isDelayed });
      expect(after.sentTo).toEqual(event.worker === undefined ? [] : [event.worker]);
    });
  });

  it('is not moved by what another place says of it (seed 2)', () => {
    let others = 0;
    inEveryHistory(2, (event, answer, before, after) => {
      if (event.type !== 'received' && event.type !== 'refused' && event.type !== 'unconfirmed') return;
      if (before.sentTo.some(({ worker }) => worker === event.worker.worker)) return;
      others += 1;
      expect(after).toEqual(before);
      expect(answer ?? false).toBe(false);
    });
    expect(others).toBeGreaterThan(100);
  });

  it('stays with a worker that has confirmed it, however late the timer fires (seed 3)', () => {
    let confirmed = 0;
    inEveryHistory(3, (event, answer, before, after) => {
      if (event.type !== 'unconfirmed' || before.receivedBy === undefined) return;
      confirmed += 1;
      expect(answer).toBe(false);
      expect(after).toEqual(before);
    });
    expect(confirmed).toBeGreaterThan(50);
  });

  it('is not sent to a worker that did not take it, for exactly the time that is set (seed 4)', () => {
    let declined = 0;
    inEveryHistory(4, (event, answer, before, after) => {
      if ((event.type !== 'refused' && event.type !== 'unconfirmed') || answer !== true) return;
      const [to] = before.sentTo;
      const isAskedAgain = after.sentTo.length === 1;
      if (isAskedAgain) return expect(event).toMatchObject({ type: 'unconfirmed', only: true, isPresent: true });
      declined += 1;
      expect(to && after.declined.has(identityText(to))).toBe(true);
    });
    expect(declined).toBeGreaterThan(100);
    const [worker] = workers as [WorkerIdentity];
    const sending = new Sending(declinedMs);
    sending.goesTo(worker);
    expect(sending.refused(worker, 10)).toBe(true);
    expect([...sending.declined(9 + declinedMs)]).toEqual([identityText(worker)]);
    expect([...sending.declined(10 + declinedMs)]).toEqual([]);
  });

  it('waits after a failure, until the delay ends or a reason to hurry comes (seed 5)', () => {
    inEveryHistory(5, ({ type }, _, before, after) => {
      if (type === 'hurry') expect(after).toMatchObject({ isUrgent: true, isDelayed: false });
      else if (type === 'delay' || type === 'delayOver') expect(after.isDelayed).toBe(type === 'delay');
      else expect(after.isDelayed).toBe(before.isDelayed);
      if (before.isUrgent && type !== 'goesTo') expect(after.isUrgent).toBe(true);
    });
  });

  it('is sent a few times to a worker that alone has the state of the job and says nothing, then to others (seed 6)', () => {
    fc.assert(
      fc.property(arbitraryWorker, fc.nat(20), (worker, goneAfter) => {
        const sending = new Sending(declinedMs);
        let sends = 0;
        while (sending.declined(0).size === 0) {
          sending.goesTo(worker);
          sends += 1;
          expect(sending.unconfirmed(choice(worker, true), sends <= goneAfter, 0)).toBe(true);
        }
        expect(sends).toBe(Math.min(mostSends, goneAfter + 1));
        sending.goesTo(worker); // it is asked again later, and counted from one
        expect(sending.unconfirmed(choice(worker, true), true, 0)).toBe(true);
        expect(sending.isSentTo(worker, worker.incarnation)).toBe(true);
      }),
      { seed: 6 },
    );
  });

  it('is lost with the process that got it, and with no other one', () => {
    const [first, second, other] = workers as [WorkerIdentity, WorkerIdentity, WorkerIdentity];
    const sending = new Sending(declinedMs);
    sending.goesTo(first);
    expect([first, second, other].map((worker) => sending.isReplaced(worker))).toEqual([false, true, false]);
    expect([first, second].map((worker) => sending.isSentTo(worker, worker.incarnation))).toEqual([true, false]);
  });

  it('is handed out when the queue has handed out its place', () => {
    const sending = new Sending(declinedMs);
    expect(sending.isHandedOut(100)).toBe(false);
    sending.isInQueue(7);
    expect([6, 7, 8].map((place) => sending.isHandedOut(place))).toEqual([false, true, true]);
  });

  it('is the first of its job, unless it was found in the queue or a worker has had it', () => {
    const [own, found] = [new Sending(declinedMs), new Sending(declinedMs)];
    found.wasInQueue(3);
    expect([own.started(), own.started(), found.started()]).toEqual([true, false, false]);
  });
});
