/**
 * Programs that take memory of the machine in every way that was found. Each goes on until the kernel refuses, or until
 * it has about 700 MiB, says so, and keeps what it has.
 */

const prelude = `
import ctypes, fcntl, mmap, os, resource, signal, socket, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
goal = 700 << 20
def call(number, *args):
    return libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in args])
def spread(work, count=20):
    "The same in several processes. The first waits for the others."
    reads, writes = os.pipe()
    for _ in range(count):
        if os.fork() == 0:
            try: work(goal // count)
            except (OSError, MemoryError, ValueError): pass
            os.write(writes, b".")
            while True: signal.pause()
    for _ in range(count): os.read(reads, 1)
def fill(one):
    one.setblocking(False)
    try:
        while True: one.send(b"x" * 100_000)
    except BlockingIOError: pass
`;

const keep = `
os.write(1, b"kept")
while True: signal.pause()
`;

/** Programs by what they take. */
const bodies: Readonly<Record<string, string>> = {
  'semaphores of System V': `
for _ in range(700 * 16):
    if call(64, 0, 32000, 0o1600) < 0: break`,
  'messages of System V': `
text = ctypes.create_string_buffer(b"\\1" + b"x" * 8190)
taken = 0
while taken < goal:
    queue = call(68, 0, 0o1600)
    if queue < 0: break
    while taken < goal and call(69, queue, text, 8000, 0o4000) == 0: taken += 8192`,
  'shared memory of System V': `
for _ in range(70):
    one = call(29, 0, 10 << 20, 0o1600)
    if one < 0: break
    libc.shmat.restype = ctypes.c_void_p
    ctypes.memset(libc.shmat(one, None, 0), 1, 10 << 20)`,
  'anonymous files': `
try:
    one = os.memfd_create("x")
    for _ in range(700): os.write(one, b"x" * (1 << 20))
except OSError: pass`,
  'secret memory': `
one = call(447, 0)
if one >= 0:
    os.ftruncate(one, goal)
    mmap.mmap(one, goal).write(b"x" * goal)`,
  'pipes of the largest size': `
def work(most):
    for _ in range(most >> 20):
        r, w = os.pipe()
        try: fcntl.fcntl(w, 1031, 1 << 20)
        except OSError: pass
        os.set_blocking(w, False)
        try:
            while True: os.write(w, b"x" * 65536)
        except BlockingIOError: pass
spread(work)`,
  'buffers of Unix sockets': `
def work(most):
    while True:
        for one in socket.socketpair():
            try: one.setsockopt(1, 7, 1 << 20)
            except OSError: pass
            fill(one)
            kept.append(one)
kept = []
spread(work)`,
  'messages of sockets that are closed': `
def work(most):
    kept = []
    while True:
        a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        fill(a)
        a.close()
        kept.append(b)
spread(work)`,
  'buffers of TCP': `
def work(most):
    server = socket.create_server(("127.0.0.1", 0))
    kept = []
    while True:
        one = socket.create_connection(server.getsockname())
        kept += [one, server.accept()[0]]
        fill(one)
spread(work)`,
  'files in flight': `
a, b = socket.socketpair()
for _ in range(3000):
    pipes = [os.pipe() for _ in range(50)]
    for _, w in pipes:
        os.set_blocking(w, False)
        os.write(w, b"x" * 65536)
    try: socket.send_fds(a, [b"x"], [end for pair in pipes for end in pair], 0x40)
    except OSError: break
    for pair in pipes:
        for end in pair: os.close(end)`,
  'pages in pipes after their mapping is gone': `
def work(most):
    kept = []
    while len(kept) < 100:
        page = mmap.mmap(-1, 2 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        page.madvise(14)
        page.write(b"x" * (2 << 20))
        kept.append(os.pipe())
        vector = struct.pack("QQ", ctypes.addressof(ctypes.c_char.from_buffer(page)), 4096)
        if call(278, kept[-1][1], vector, 1, 0) < 0: break
spread(work)`,
  'watches of epoll': `
import select
def work(most):
    kept = [os.eventfd(0) for _ in range(120)]
    while True:
        one = select.epoll()
        for fd in kept[:120]: one.register(fd, 1)
        kept.append(one)
spread(work)`,
  'events of inotify': `
os.chdir("/tmp")
for _ in range(120):
    one = libc.inotify_init1(0o4000)
    if one < 0: break
    libc.inotify_add_watch(one, b"/tmp", 0xfff)
else:
    for i in range(8000):
        name = f"{i:0250}"
        open(name, "w").close()
        os.unlink(name)`,
  'timers, signals and event descriptors': `
def work(most):
    while True:
        for number, args in ((222, (0, 0, ctypes.byref(ctypes.c_int()))), (129, (os.getpid(), 40, struct.pack("iiiQ", 40, 0, -1, 0) + bytes(112)))):
            if call(number, *args) < 0 and number == 129: raise OSError
signal.pthread_sigmask(signal.SIG_BLOCK, [40])
spread(work)`,
  'files in /tmp and /dev/shm': `
for place in ("/tmp", "/dev/shm"):
    try:
        for i in range(700): open(f"{place}/{i}", "wb").write(b"x" * (1 << 20))
    except OSError: pass`,
  'files that are deleted and open': `
kept = []
try:
    while True:
        kept.append(open("/tmp/x", "wb", buffering=0))
        os.unlink("/tmp/x")
        kept[-1].write(b"x" * (1 << 20))
except OSError: pass`,
  'empty files with long names': `
try:
    for i in range(700_000): os.mknod(f"/tmp/{i:0250}")
except OSError: pass`,
  'attributes of files': `
open("/tmp/x", "w").close()
for i in range(11_000):
    try: os.setxattr("/tmp/x", f"user.{i}", b"x" * 65000)
    except OSError: break`,
  threads: `
threading.stack_size(1 << 20)
while True:
    try: threading.Thread(target=lambda: (bytearray(1 << 20), time.sleep(99)), daemon=True).start()
    except RuntimeError: break`,
  processes: `
while True:
    try:
        if os.fork() == 0: kept = bytearray(10 << 20)
    except OSError: break`,
  'many small mappings': `
def work(most):
    for i in range(65_000): libc.mmap(None, 4096, 1 + 2 * (i % 2), 0x22, -1, 0)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
spread(work, 22)`,
  'mappings of processes that hide themselves': `
import shutil
shutil.copy(sys.executable, "/tmp/hidden")
os.chmod("/tmp/hidden", 0o111)
code = """
import ctypes, os, signal, sys
libc = ctypes.CDLL(None)
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
for i in range(65_000): libc.mmap(None, 4096, 1 + 2 * (i % 2), 0x22, -1, 0)
os.write(int(sys.argv[1]), b'.')
while True: signal.pause()"""
def work(most):
    os.set_inheritable(writes, True)
    os.execve("/tmp/hidden", ["/tmp/hidden", "-c", code, str(writes)], {"PYTHONHOME": sys.prefix})
reads, writes = os.pipe()
for _ in range(22):
    if os.fork() == 0: work(0)
for _ in range(22): os.read(reads, 1)`,
  'page tables of sparse mappings': `
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
for _ in range(4):
    start = libc.mmap(None, 1 << 40, 1, 0x4022, -1, 0)
    libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(1 << 40), 15)
    for i in range(45_000): ctypes.c_char.from_address(start + (i << 21)).value`,
  'shared memory that is not mapped any more': `
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
for _ in range(35):
    start = libc.mmap(None, 20 << 20, 3, 0x21, -1, 0)
    ctypes.memset(start, 1, 20 << 20)
    libc.munmap(start + 4096, (20 << 20) - 4096)`,
  'shared memory of /dev/zero': `
zero = os.open("/dev/zero", os.O_RDWR)
try:
    for _ in range(35):
        one = mmap.mmap(zero, 20 << 20)
        one.write(b"x" * (20 << 20))
        one.madvise(4)
except OSError: pass`,
  'memory behind a first thread that has ended': `
def work():
    time.sleep(0.1)
    kept = []
    for _ in range(35):
        kept.append(mmap.mmap(-1, 20 << 20))
        kept[-1].write(b"x" * (20 << 20))
    os.write(1, b"kept")
    while True: time.sleep(99)
threading.Thread(target=work).start()
call(60, 0)`,
  'locks of files': `
file = os.open("/tmp/x", os.O_RDWR | os.O_CREAT)
try:
    for i in range(3_000_000, 0, -1): fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * i)
except OSError: pass`,
  keys: `
try:
    for i in range(1000):
        if call(248, b"user", str(i).encode(), b"x" * 32000, 32000, -3) < 0: break
except OSError: pass`,
  'rings and maps of the kernel': `
for number, args in ((425, (4096, bytes(120))), (321, (0, struct.pack("IIII", 1, 8, 1 << 20, 100) + bytes(112), 128)), (323, (0,)), (206, (60000, bytes(8)))):
    for _ in range(200):
        if call(number, *args) < 0: break`,
  'filters of system calls': `
program = (b"\\x06\\0\\0\\0\\0\\0\\xff\\x7f") * 4000
text = ctypes.create_string_buffer(program)
def work(most):
    for _ in range(8):
        if call(317, 1, 0, struct.pack("HxxxxxxQ", 4000, ctypes.addressof(text))) < 0: break
spread(work, 22)`,
  'user namespaces and mounts': `
if libc.unshare(0x10000000 | 0x20000) == 0:
    for i in range(100_000):
        if libc.mount(b"/tmp", b"/tmp", None, 4096, None) != 0: break`,
  terminals: `
kept = []
try:
    while True:
        master = os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
        fcntl.ioctl(master, 0x40045431, struct.pack("i", 0))
        kept.append(master)
        os.set_blocking(master, False)
        try:
            while True: os.write(master, b"x" * 4096)
        except BlockingIOError: pass
except OSError: pass`,
  'large environments': `
def work(most):
    text = "x" * 120_000
    for _ in range(1): os.execve(sys.executable, [sys.executable, "-c", "import signal\\nwhile True: signal.pause()", *[text] * 12], {})
for _ in range(20):
    if os.fork() == 0: work(0)
time.sleep(1)`,
};

/** A program by what it takes, to be run with `python -c`. */
export const memoryEaters: readonly { readonly takes: string; readonly code: string }[] = Object.entries(bodies).map(
  ([takes, body]) => ({ takes, code: `${prelude}${body}${keep}` }),
);
