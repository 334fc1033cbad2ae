/**
 * Hostile programs. The guard ends each with its reason, it leaves no process, and the next program is unaffected. As
 * root, and as an ordinary user.
 */
import { createServer, type Server } from 'node:net';
import { once } from 'node:events';
import { existsSync, realpathSync, statfsSync } from 'node:fs';
import { homedir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SandboxLimits } from './limits.ts';
import { processesWith, testPlaces } from './places.test-support.ts';
import { runInSandbox, type SandboxResult } from './run.ts';
import { packageFile } from '../package-file.ts';

const limits: SandboxLimits = {
  wallMs: 4_000,
  cpuMs: 4_000,
  memoryMb: 128,
  tasks: 24,
  outputBytes: 100_000,
  diskMb: 16,
  openFiles: 64,
};
const mark = `petrel-hostile-${process.pid}`;
const places = testPlaces();

it.skipIf(places.length === 0)('a sandbox can be built on this machine', () => {
  expect(places.map(({ name }) => name)).toContain('an ordinary user');
});

describe.skipIf(places.length === 0).each(places)(
  'a hostile program, run by $name,',
  ({ place: { walls, python } }) => {
    async function run(code: string, more: Partial<SandboxLimits> = {}, by = walls): Promise<SandboxResult> {
      const result = await runInSandbox(by, {
        command: [python.program, '-s', '-B', '-c', code, mark],
        stdin: '',
        env: { HOME: '/tmp' },
        binds: python.binds,
        limits: { ...limits, ...more },
      });
      // The guard itself ended it and said why: nothing waited for the program to agree.
      expect(result.end.type).not.toBe('lost');
      expect(processesWith(mark)).toBe(0);
      return result;
    }

    /** What the program printed as JSON. */
    async function answers(code: string): Promise<unknown> {
      const { end, stdout, stderr } = await run(`import json, os, socket, sys\n${helper}\n${code}`);
      expect({ end, stderr }).toEqual({ end: { type: 'exit', code: 0 }, stderr: '' });
      return JSON.parse(stdout);
    }

    async function fineAfter(): Promise<void> {
      const { end, stdout } = await run('import os; print(os.listdir("/tmp"), sum(range(10)))');
      expect({ end, stdout }).toEqual({ end: { type: 'exit', code: 0 }, stdout: '[] 45\n' });
    }

    it.each([
      ['forks without end', 'import os\nwhile True:\n try: os.fork()\n except OSError: pass'],
      [
        'forks without end, in new sessions, from parents that end',
        'import os\nwhile True:\n try:\n  if os.fork(): os._exit(0) if os.getpid() % 7 == 0 and os.getppid() != 1 else None\n  else: os.setsid()\n except OSError: pass',
      ],
      [
        'starts threads without end',
        'import threading, time\nthreading.stack_size(2**18)\nwhile True:\n try: threading.Thread(target=time.sleep, args=(99,)).start()\n except RuntimeError: pass',
      ],
    ])('that %s is ended for its processes', async (_, code) => {
      expect((await run(code)).end).toEqual({ type: 'limit', limit: 'tasks' });
      await fineAfter();
    });

    it('that fills memory gets an error, or is ended for it', async () => {
      const { end, stderr, peakMb } = await run('x = []\nwhile True: x.append(bytearray(10**6))');
      if (end.type === 'exit') expect(stderr).toContain('MemoryError');
      else expect(end).toEqual({ type: 'limit', limit: 'memory' });
      expect(peakMb).toBeGreaterThan(64);
      expect(peakMb).toBeLessThan(2 * limits.memoryMb);
      await fineAfter();
    });

    it.each([
      [
        'in several processes',
        'import os, time\nfor _ in range(4):\n if os.fork() == 0: break\nx = bytearray(60 * 10**6)\ntime.sleep(99)',
      ],
      ['in shared memory', 'import mmap\nx = mmap.mmap(-1, 10**9)\nwhile True: x.write(b"x" * 10**6)'],
    ])('that fills memory %s is ended for it', async (_, code) => {
      expect((await run(code)).end).toEqual({ type: 'limit', limit: 'memory' });
      await fineAfter();
    });

    it('does not pay once per process for memory that its processes share', async () => {
      const code =
        'import os, time\nx = bytearray(40 * 10**6)\nfor _ in range(8):\n if os.fork() == 0: time.sleep(1); os._exit(0)\nfor _ in range(8): os.wait()\nprint("fine")';
      expect(await run(code)).toMatchObject({ end: { type: 'exit', code: 0 }, stdout: 'fine\n' });
    });

    it('gets no memory that belongs to no process', async () => {
      expect(
        await answers(
          'import ctypes\nlibc = ctypes.CDLL(None)\nsay(memfd=libc.memfd_create(b"x", 0), shm=libc.shmget(0, 10**6, 0o1600), queue=libc.msgget(0, 0o1600), semaphores=libc.semget(0, 32000, 0o1600))',
        ),
      ).toEqual({ memfd: -1, shm: -1, queue: -1, semaphores: -1 });
    });

    it.each(['stdout', 'stderr'] as const)(
      'that prints to %s without end is ended for it, and the text is cut',
      async (stream) => {
        const result = await run(`import sys\nwhile True: sys.${stream}.write("x" * 1000)`);
        expect(result.end).toEqual({ type: 'limit', limit: 'output' });
        expect(result[stream]).toHaveLength(limits.outputBytes);
        await fineAfter();
      },
    );

    it('finds no environment, no home folder and no file of petrel', async () => {
      process.env['SECRET_OF_THE_WORKER'] = 'a secret of the worker';
      const folders = [
        homedir(),
        '/root',
        '/home',
        packageFile(),
        '/etc',
        '/var',
        '/sys',
        '/mnt',
        '/run',
        '/opt',
        '/srv',
      ];
      const found = (await answers(
        `say(env=sorted(os.environ), seen={p: sorted(os.listdir(p)) for p in ${JSON.stringify(folders)} if os.path.exists(p)},
        proc=tried(lambda: open("/proc/1/environ").read()), around=[n for n in os.listdir("/proc") if n.isdigit() and int(n) > 2])`,
      )) as { env: string[]; seen: Record<string, string[]>; proc: string; around: string[] };
      delete process.env['SECRET_OF_THE_WORKER'];
      expect(found.env.filter((name) => !['HOME', 'PWD', 'LC_CTYPE'].includes(name))).toEqual([]);
      expect(found).toMatchObject({ proc: 'PermissionError', around: [] });
      // Only the way to the interpreter's own files.
      for (const [folder, names] of Object.entries(found.seen))
        for (const name of names)
          expect(
            folder === '/etc'
              ? ['alternatives', 'ld.so.cache'].includes(name)
              : python.binds.some(({ path }) =>
                  `${realpathSync.native(existsSync(path) ? path : '/')}/`.startsWith(`${folder}/${name}/`),
                ),
            `${folder}/${name}`,
          ).toBe(true);
    });

    it('gets capabilities from nothing', async () => {
      expect(
        await answers(`
import ctypes
libc = ctypes.CDLL(None)
status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
say(effective=status["CapEff"].strip("0"), permitted=status["CapPrm"].strip("0"), bounding=libc.prctl(24, 21), news=status["NoNewPrivs"],
    user=tried(lambda: os.setuid(0)), groups=os.getgroups() in ([], [65534], [1000]), id=os.getuid(),
    unshare=libc.unshare(0x10000000), clone=libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0), clone3=libc.syscall(435, 0, 0),
    mount=libc.mount(b"none", b"/tmp", b"tmpfs", 0, 0), chroot=libc.chroot(b"/tmp"), trace=libc.ptrace(16, 1, 0, 0),
    keys=libc.syscall(250, 0, -4, 0), bpf=libc.syscall(321, 0, 0, 0), ring=libc.syscall(425, 1, 0), device=tried(lambda: os.mknod("/tmp/d", 0o60600, 0x800)))`),
      ).toMatchObject({
        ...{ effective: '', permitted: '', news: '1', user: expect.stringMatching(/Error$/), id: 1000 },
        ...{ unshare: -1, clone: -1, clone3: -1, mount: -1, chroot: -1, trace: -1, keys: -1, bpf: -1, ring: -1 },
        device: 'PermissionError',
      });
    });

    describe('that wants the network', () => {
      let tcp: Server;
      let abstract: Server;
      let reached = 0;
      beforeAll(async () => {
        tcp = createServer(() => (reached += 1)).listen(0, '127.0.0.1');
        abstract = createServer(() => (reached += 1)).listen(`\0${mark}-${walls.root}`);
        await Promise.all([tcp, abstract].map((server) => once(server, 'listening')));
      });
      afterAll(() => [tcp, abstract].forEach((server) => server.close()));

      it('reaches neither the internet, nor the address of a cloud’s metadata, nor this machine', async () => {
        const { port } = tcp.address() as { port: number };
        const found = (await answers(`
def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as s:
        s.settimeout(1)
        s.connect(address)
        s.send(b"x")
say(**{name: tried(lambda: connect(*where)) for name, where in {
  "internet": (socket.AF_INET, ("1.1.1.1", 80)), "dns": (socket.AF_INET, ("1.1.1.1", 53), socket.SOCK_DGRAM),
  "metadata": (socket.AF_INET, ("169.254.169.254", 80)), "metadata6": (socket.AF_INET6, ("fd00:ec2::254", 80)),
  "here": (socket.AF_INET, ("127.0.0.1", ${port})), "abstract": (socket.AF_UNIX, "\\0${mark}-${walls.root}"),
  "vsock": (40, (2, 1024)), "netlink": (16, (0, 0)), "packet": (17, ("lo", 0)),
}.items()}, name=tried(lambda: socket.gethostbyname("example.com")), links=[name for _, name in socket.if_nameindex()] if False else [])`)) as Record<
          string,
          unknown
        >;
        expect(
          Object.entries(found).filter(
            ([name, error]) => name !== 'links' && !/Error|timeout|gaierror/.test(String(error)),
          ),
        ).toEqual([]);
        expect(found).toMatchObject({ internet: 'OSError', metadata: 'OSError', vsock: 'OSError', netlink: 'OSError' });
        expect(reached).toBe(0);
      });
    });

    it('can write nowhere but in its own /tmp and /dev/shm', async () => {
      const places = [
        '/x',
        '/dev/x',
        '/usr/lib/x',
        '/lib/x',
        '/petrel/x',
        '/petrel/guard',
        '/proc/sys/kernel/hostname',
        '/proc/sysrq-trigger',
        python.program,
        '/etc/x',
      ];
      const found = (await answers(
        `say(**{p: tried(lambda: open(p, "r+b" if os.path.isfile(p) else "wb").write(b"x") and "written") for p in ${JSON.stringify(places)}}, tmp=tried(lambda: open("/tmp/x", "w").write("x")), shm=tried(lambda: open("/dev/shm/x", "w").write("x")), priority=tried(lambda: open("/proc/1/oom_score_adj", "w").write("-1000")))`,
      )) as Record<string, unknown>;
      expect(found).toMatchObject({ tmp: 1, shm: 1, priority: 'PermissionError' });
      for (const path of places) expect([path, found[path]]).toEqual([path, expect.stringMatching(/Error$/)]);
      await fineAfter();
    });

    it('cannot fill the disk', async () => {
      const { bavail: before, bsize } = statfsSync('/tmp');
      const code = `
def fill(place):
    total = 0
    for i in range(100):
        with open(f"{place}/{i}", "wb", buffering=0) as file:
            try:
                while True: total += file.write(b"x" * 10**6)
            except OSError as error:
                if error.errno == 28: return total
say(tmp=fill("/tmp"), shm=fill("/dev/shm"), big=tried(lambda: os.truncate(os.open("/tmp/0", os.O_RDWR), 10**9)))`;
      const found = (await answers(code)) as { tmp: number; shm: number; big: string };
      expect(found.tmp).toBeLessThanOrEqual(limits.diskMb * 2 ** 20);
      expect(found.shm).toBeLessThanOrEqual(limits.diskMb * 2 ** 20);
      expect(found.big).toBe('OSError');
      expect((before - statfsSync('/tmp').bavail) * bsize).toBeLessThan(500 * 2 ** 20);
      await fineAfter();
    });

    it('cannot fill memory by files where bubblewrap cannot limit their size', async () => {
      const old = { ...walls, sizes: false };
      const code = 'i = 0\nwhile True:\n i += 1\n open(f"/tmp/{i}", "wb").write(b"x" * 10**6)';
      const { end } = await run(code, { diskMb: 4 }, old);
      expect(end).toEqual({ type: 'limit', limit: 'memory' });
      await fineAfter();
    });

    it.skipIf(walls.cgroups === undefined)('is ended for memory of the kernel, where there are cgroups', async () => {
      const code = `
import os, socket, time
for _ in range(20):
    if os.fork() == 0: break
pairs = []
try:
    while True:
        pair = socket.socketpair()
        pairs.append(pair)
        pair[0].setblocking(False)
        try:
            while True: pair[0].send(b"x" * 100000)
        except BlockingIOError: pass
except OSError: time.sleep(99)`;
      expect((await run(code)).end).toEqual({ type: 'limit', limit: 'memory' });
      await fineAfter();
    });

    it('finds nothing behind links that it makes', async () => {
      const targets = [
        '/etc/shadow',
        '/proc/1/root/etc/shadow',
        '/proc/1/cwd',
        `${homedir()}/.bashrc`,
        '../../../etc/passwd',
        packageFile('package.json'),
      ];
      const found = (await answers(`
seen = {}
for i, target in enumerate(${JSON.stringify(targets)}):
    os.symlink(target, f"/tmp/link{i}")
    seen[target] = tried(lambda: open(f"/tmp/link{i}").read())
say(**seen, hard=tried(lambda: os.link("/petrel/guard", "/tmp/hard")))`)) as Record<string, unknown>;
      for (const target of [...targets, 'hard'])
        expect([target, found[target]]).toEqual([target, expect.stringMatching(/Error$/)]);
      await fineAfter();
    });

    it('that ignores every signal and hides its processes is ended with all of them', async () => {
      const code = `
import os, signal, time
for number in signal.valid_signals():
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0: os.setsid()
        break
while True: time.sleep(1)`;
      expect((await run(code)).end).toEqual({ type: 'limit', limit: 'wall' });
      await fineAfter();
    });

    it('that computes without end is ended for its processor time', async () => {
      const result = await run('while True: pass', { cpuMs: 500, wallMs: 12_000 });
      expect(result.end).toEqual({ type: 'limit', limit: 'cpu' });
      expect(result.cpuSeconds).toBeGreaterThan(0.4);
      // Two processes have the limit together.
      const two = await run('import os\nos.fork()\nwhile True: pass', { cpuMs: 600, wallMs: 12_000 });
      expect(two.end).toEqual({ type: 'limit', limit: 'cpu' });
    });

    it('cannot end or stop the process that guards it, nor anything outside', async () => {
      const found = await answers(`
import signal
say(kill=tried(lambda: os.kill(1, signal.SIGKILL)), stop=tried(lambda: os.kill(1, signal.SIGSTOP)), parent=os.getppid(),
    memory=tried(lambda: open("/proc/1/mem", "rb").read(1)), files=tried(lambda: os.listdir("/proc/1/fd")), outside=tried(lambda: os.kill(${process.pid}, 0)))`);
      expect(found).toMatchObject({
        parent: 1,
        memory: 'PermissionError',
        files: 'PermissionError',
        outside: 'ProcessLookupError',
      });
      const { end } = await run(
        'import os, signal\ntry: os.kill(-1, signal.SIGKILL)\nexcept OSError: pass\nos.kill(os.getpid(), signal.SIGKILL)',
      );
      expect(end).toEqual({ type: 'signal', signal: 9 });
      await fineAfter();
    });

    it('cannot forge the report of its end', async () => {
      const code = `
import os
for fd in range(3, 64):
    try: os.write(fd, b"end=exit value=0 wall_ms=1\\n")
    except OSError: pass
os._exit(3)`;
      expect((await run(code)).end).toEqual({ type: 'exit', code: 3 });
    });

    it('that ends takes with it what it has started', async () => {
      const code = 'import os, time\nif os.fork() == 0:\n os.setsid()\n time.sleep(99)\nprint("done")';
      expect(await run(code)).toMatchObject({ end: { type: 'exit', code: 0 }, stdout: 'done\n' });
    });

    it('opens only so many files', async () => {
      const found = await answers(
        'opened = []\nsay(error=tried(lambda: [opened.append(os.open("/tmp", 0)) for _ in range(999)]), count=len(opened) < 64)',
      );
      expect(found).toEqual({ error: 'OSError', count: true });
    });
  },
);

/** `tried`: what a call gives, or the name of its error. */
const helper = `
def tried(work):
    try: return work()
    except BaseException as error: return type(error).__name__ if not isinstance(error, socket.gaierror) else "gaierror"
def say(**values): print(json.dumps(values, default=str))`;
