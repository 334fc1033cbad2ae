/** Prints the digests of the functions of core/math on this Node: plain JavaScript once built, without the addon. */
import { digests } from './digests.ts';

process.stdout.write(JSON.stringify(digests(Number(process.argv[2] ?? 50_000))));
