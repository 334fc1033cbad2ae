/** Checks that nothing runs when no sandbox can be built, and that the refusal says what to type. */
import { describe, expect, it } from 'vitest';
import { openWalls, tryWalls } from './open-walls.ts';
import { testPlaces } from './places.test-support.ts';
import { whyRefused } from './refusal.ts';

const places = testPlaces();

it('without bubblewrap, the refusal says how to install it', () => {
  const path = process.env['PATH'];
  process.env['PATH'] = '/nonexistent';
  try {
    expect(() => openWalls()).toThrow(
      expect.objectContaining({ code: 'NoSandbox', hint: expect.stringContaining('apt-get install bubblewrap') }),
    );
  } finally {
    process.env['PATH'] = path;
  }
});

describe.skipIf(places.length === 0)('where user namespaces are forbidden', () => {
  it('no sandbox is built, and the refusal says so', () => {
    const [{ place } = places[0]!] = places;
    // A user namespace in which no other can be made.
    const script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"';
    const prefix = ['unshare', '--user', '--map-root-user', 'sh', '-c', script, '--'];
    expect(() => tryWalls({ ...place.walls, root: false, prefix })).toThrow(
      expect.objectContaining({
        code: 'NoSandbox',
        message: expect.stringMatching(/^bubblewrap cannot build a sandbox here: bwrap: .*namespace/),
        hint: expect.stringContaining('docker run --security-opt seccomp=unconfined'),
      }),
    );
  });
});

it('an older bubblewrap is named as the reason', () => {
  expect(whyRefused(false, 'bwrap: Unknown option --perms').hint).toContain('bubblewrap 0.5 or newer');
});
