/** Hashing on several threads, for engines whose state is elsewhere, too. */
export { blockDigests } from '../../../../native/index.ts';
