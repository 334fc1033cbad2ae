/**
 * The user data of a bought machine: a shell script that brings it into its pool and ends it when it has nothing to do
 * there. Its token can only ask to join, and only instances of its launch get an answer (core/wire/join.ts), so it is
 * no secret.
 */
import { readFile } from 'node:fs/promises';
import { InvalidInputError } from '../../core/errors.ts';
import type { Store } from '../../core/ports/store.ts';
import { keys } from '../../core/records/keys.ts';
import type { JoinFile } from '../../core/wire/join.ts';
import { maxUserDataBytes } from './ec2/launch.ts';
import { builtFile } from '../home.ts';
import { sha256 } from '../../log/objects/digest.ts';

export interface BootScriptFacts {
  readonly token: JoinFile;
  readonly store: Store;
  readonly region: string;
  /** ISO time: the machine ends itself then. */
  readonly expires: string;
}

/** Puts the program that joins into the store. Throws InvalidInputError when the script is too long. */
export async function bootScript({ token, store, region, expires }: BootScriptFacts): Promise<string> {
  const program = await readFile(builtFile('programs/join.mjs'));
  const digest = sha256(program);
  const key = keys.buildFile(digest);
  if ((await store.head(key)) === undefined) await store.put(key, program);
  const { AWS_ENDPOINT_URL_S3: ofS3, AWS_ENDPOINT_URL: ofAll } = process.env;
  const endpoint = ofS3 ?? ofAll;
  const boot = { store: store.url, key, digest, region, ...(endpoint !== undefined && { endpoint }), token };
  const text = script(boot, await readFile(builtFile('programs/boot.mjs'), 'utf8'), {
    region,
    ...(endpoint !== undefined && { endpoint }),
    untilSeconds: Math.floor(Date.parse(expires) / 1_000),
    lonelySeconds: token.lonelySeconds ?? usualLonelySeconds,
  });
  const bytes = Buffer.byteLength(text);
  if (bytes <= maxUserDataBytes) return text;
  throw new InvalidInputError(`expected user data of at most ${maxUserDataBytes} bytes, got ${bytes}`, {
    hint: 'a shorter name of the store or of its server makes it shorter',
  });
}

const usualLonelySeconds = 600;

interface ScriptFacts {
  readonly region: string;
  readonly endpoint?: string;
  readonly untilSeconds: number;
  readonly lonelySeconds: number;
}

const script = (
  boot: object,
  program: string,
  { region, endpoint, untilSeconds, lonelySeconds }: ScriptFacts,
) => `#!/bin/bash
export HOME="\${HOME:-/root}" AWS_REGION=${region}${endpoint === undefined ? '' : ` AWS_ENDPOINT_URL_S3=${endpoint}`}
export PETREL_HOME="$HOME/petrel"
umask 077
mkdir -p "$PETREL_HOME" && cd "$PETREL_HOME" || exit 1
cat > boot.mjs <<'END_OF_PROGRAM'
globalThis.petrelBoot = ${JSON.stringify(boot)};
${program.trimEnd()}
END_OF_PROGRAM
last=$(date +%s)
while now=$(date +%s); [ "$now" -lt ${untilSeconds} ] && [ $((now - last)) -lt ${lonelySeconds} ]; do
  if [ -f join.mjs ] || node boot.mjs join.mjs; then
    timeout --kill-after=150 $((${untilSeconds} - now)) node join.mjs && break
    [ $(($(date +%s) - now)) -gt 60 ] && last=$(date +%s)
  fi
  sleep 2
done
shutdown -h now
`;
