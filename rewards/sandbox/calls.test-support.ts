/** The table of system calls (native/guard/calls.h), and a program that tries calls by their numbers. */
import { readFileSync } from 'node:fs';
import { packageFile } from '../package-file.ts';

/** One line of the table. */
export interface CallEntry {
  readonly kind: 'CALL' | 'FORMS' | 'ANSWER';
  readonly number: number;
  readonly name: string;
  /** The rule of FORMS, the errno of ANSWER. */
  readonly more: string | undefined;
  readonly why: string;
}

/** Reads the table that the guard's filter is built from. */
export function callTable(): readonly CallEntry[] {
  const text = readFileSync(packageFile('native', 'guard', 'calls.h'), 'utf8');
  const lines = text.matchAll(/^(CALL|FORMS|ANSWER)\((\d+), (\w+)(?:, (\w+))?, "([^"]+)"\)$/gm);
  return [...lines].map(([, kind, number, name = '', more, why = '']) => {
    return { kind: kind as CallEntry['kind'], number: Number(number), name, more, why };
  });
}

/** A call by its number, with six arguments at most. */
export interface Attempt {
  readonly number: number;
  readonly args?: readonly number[];
  /** Does the call wait for ever? Then a timer ends it. */
  readonly blocks?: boolean;
  /** True for a call as a 32-bit program makes it. */
  readonly from32?: boolean;
}

/**
 * A Python program that makes each attempt in a process of its own, and prints a JSON list: the name of the error,
 * `done`, or how the process ended (`ended`, `signal 14`).
 */
export function attemptsProgram(attempts: readonly Attempt[]): string {
  return `
import ctypes, errno, json, mmap, os, signal
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
page = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
call32 = ctypes.CFUNCTYPE(ctypes.c_int)(address)

def from_32_bits(number):
    # push rbx; xor ebx, ebx; mov eax, number; int 0x80; pop rbx; ret
    page[0:12] = b"\\x53\\x31\\xdb\\xb8" + number.to_bytes(4, "little") + b"\\xcd\\x80\\x5b\\xc3"
    result = call32()
    return "done" if result >= 0 else errno.errorcode.get(-result, str(-result))

def call(number, args=(), blocks=False, from32=False):
    if blocks:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
    if from32:
        return from_32_bits(number)
    values = [ctypes.c_long(value) for value in (*args, *[0] * (6 - len(args)))]
    result = libc.syscall(ctypes.c_long(number), *values)
    return "done" if result != -1 else errno.errorcode.get(ctypes.get_errno(), "?")

def attempt(one):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(2)  # a call may ruin the child's own stack, and the C library would say so there
        os.write(write, f"{call(**one)}\\n".encode())
        os._exit(0)
    os.close(write)
    _, status = os.waitpid(child, 0)
    os.set_blocking(read, False)
    try:
        said = os.read(read, 100).decode().split("\\n")[0]  # fork and clone answer twice
    except BlockingIOError:
        said = ""
    os.close(read)
    return said or (f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "ended")

print(json.dumps([attempt(one) for one in json.loads('''${JSON.stringify(attempts)}''')]))`;
}
