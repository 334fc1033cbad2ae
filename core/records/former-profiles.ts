/**
 * Numeric profiles of builds without an arithmetic version. Commit 5ad3543 named its deterministic profile by a hash
 * over the engine's sources and the version of the compiler; its results equal those of arithmetic version 1. A run
 * whose profile no worker offers continues in a new term, from its newest checkpoint (api/runs/engine-term.ts).
 */

/** Hashes in the profile ids of 5ad3543, by version of the GNU compiler that built it. */
const hashesOf5ad3543: Readonly<Record<string, string>> = {
  '9.4.0': '65089009c3d9',
  '9.5.0': '003558eda871',
  '10.2.1': '29933f381641',
  '10.3.0': '3d9de3b27ce8',
  '10.5.0': 'e7760e7d7b6d',
  '11.1.0': '2e3c79b4b4f9',
  '11.2.0': 'b6c9011d744e',
  '11.3.0': 'e82d7b76fb7f',
  '11.3.1': 'e3e80c6f7d52',
  '11.4.0': '9ecfa04225d4',
  '11.5.0': 'fb4530eeffe3',
  '12.1.0': 'cab3219262f9',
  '12.2.0': '79b78285ef90',
  '12.2.1': 'f0f4beb556d1',
  '12.3.0': '7e0ad8993045',
  '12.4.0': 'd435fb6ecc71',
  '13.1.0': '4a664f74cedb',
  '13.1.1': 'e05f30379461',
  '13.2.0': '7b2afe888010',
  '13.2.1': 'f8dbe2a31044',
  '13.3.0': '02d34f4e108f',
  '13.3.1': '6bd1a157ee9c',
  '13.4.0': '5ab531c201aa',
  '14.1.0': '73c123d08955',
  '14.1.1': '3a30296ff1e0',
  '14.2.0': '9377f40fade5',
  '14.2.1': '95e2be84bc21',
  '14.3.0': '311537ea9149',
  '14.3.1': '9e6b6dd3b9c2',
  '15.1.0': '75e28439b2fc',
  '15.1.1': '78ed017764a2',
  '15.2.0': 'b001f44e5113',
  '15.2.1': '3404890fef99',
};

const newIds: ReadonlyMap<string, string> = new Map(
  Object.values(hashesOf5ad3543).map((hash) => [`det-${hash}`, 'det-1']),
);

/** The profile id that workers offer for a recorded profile: the current id for one of a former build. */
export function offeredProfile(id: string): string {
  return newIds.get(id) ?? id;
}
