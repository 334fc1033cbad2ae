"""Runs a program on test cases, inside a sandbox (rewards/code/program.ts). Standard library only.

Reads one JSON value from stdin: {"code", "function" (null: the program reads stdin), "tests" (inputs), "seconds" and
"bytes" (limits of one test)}. Writes one JSON line per test as soon as it is done. Each test runs in a process of its
own, so that it changes nothing for the next one. The expected outputs are not known here: whatever the program does to
this process or to its lines, it can only give answers of its own.
"""

import atexit
import builtins
import io
import json
import os
import select
import shutil
import signal
import sys
import threading
import time
import traceback
import types

# The names that programs of these data sets use without importing them.
PREAMBLE = "\n".join(
    [f"from {name} import *" for name in (
        "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics",
        "itertools", "functools", "operator", "io", "sys", "json", "builtins", "typing")]
    + [f"import {name}" for name in (
        "string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random", "statistics",
        "itertools", "functools", "operator", "io", "sys", "json")]
)
RECURSION = 600_000
KEPT_ERROR = 400


def main():
    request = json.load(sys.stdin.buffer)
    reports = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    names = {"__builtins__": builtins}
    exec(PREAMBLE, names)
    sys.setrecursionlimit(RECURSION)
    code = request["code"]
    try:
        compiled = compile(code, "program.py", "exec")
    except BaseException as error:
        print(json.dumps({"end": "syntax", "error": describe(error)}), file=reports, flush=True)
        return
    for index, given in enumerate(request["tests"]):
        if request["function"] is None:
            work = lambda: run_program(compiled, names)
        else:
            work = lambda: call_function(compiled, code, names, request["function"], given)
        outcome = run_test(work, given if request["function"] is None else "", request["seconds"], request["bytes"])
        print(json.dumps({"test": index, **outcome}), file=reports, flush=True)


def run_test(work, stdin, seconds, limit):
    """Forks, and collects what the child writes to stdout, to stderr and to the pipe of results."""
    given = os.open("/tmp", os.O_TMPFILE | os.O_RDWR)
    with os.fdopen(os.dup(given), "wb") as file:
        file.write(stdin.encode("utf-8", "surrogateescape"))
    os.lseek(given, 0, os.SEEK_SET)
    pipes = {name: os.pipe() for name in ("out", "err", "value")}
    child = os.fork()
    if child == 0:
        be_program(work, given, pipes)
    os.close(given)
    for _, write in pipes.values():
        os.close(write)
    texts, ended = collect(child, {name: read for name, (read, _) in pipes.items()}, seconds, limit)
    for read, _ in pipes.values():
        os.close(read)
    status = end_all(child)
    if ended is None:
        code = os.waitstatus_to_exitcode(status)
        ended = "ok" if code == 0 else "failed" if code > 0 else "signal"
        if code < 0:
            texts["err"] = name_of(-code).encode()
    error = texts["err"].decode("utf-8", "replace").strip()[-KEPT_ERROR:]
    return {
        "end": ended,
        "out": texts["out"].decode("utf-8", "replace"),
        "value": texts["value"].decode("utf-8", "replace") or None,
        "error": error,
    }


def collect(child, reads, seconds, limit):
    """Until the child has ended (None), or a limit is exceeded ("time", "output")."""
    texts = {name: bytearray() for name in reads}
    names = {fd: name for name, fd in reads.items()}
    end = os.pidfd_open(child)
    poll = select.poll()
    for fd in (*names, end):
        poll.register(fd, select.POLLIN)
    deadline = time.monotonic() + seconds
    over = False
    try:
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                return texts, "time"
            # After the end of the child, only what is already in the pipes.
            ready = [fd for fd, _ in poll.poll(0 if over else left * 1000)]
            if over and not any(fd in names for fd in ready):
                return texts, None
            for fd in ready:
                if fd == end:
                    over = True
                    poll.unregister(end)
                    continue
                chunk = os.read(fd, 65536)
                text = texts[names[fd]]
                if not chunk:
                    poll.unregister(fd)
                elif names[fd] == "err":
                    text += chunk
                    del text[: -4 * KEPT_ERROR]
                elif len(text) + len(chunk) > limit:
                    return texts, "output"
                else:
                    text += chunk
    finally:
        os.close(end)


def end_all(child):
    """Ends everything that the test has left in this sandbox: all processes but the guard and this one, and its files.
    """
    kill_others()
    status = os.waitpid(child, 0)[1]
    while others():
        kill_others()
        time.sleep(0.001)
    for place in ("/tmp", "/dev/shm"):
        for entry in os.scandir(place):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)
    return status


def kill_others():
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError:
        pass  # there is none


def others():
    """Processes besides the guard, which is process 1, and this one."""
    return set(filter(str.isdigit, os.listdir("/proc"))) - {"1", str(os.getpid())}


def name_of(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def be_program(work, given, pipes):
    status = 1
    try:
        os.setsid()
        results = pipes["value"][1]
        os.dup2(given, 0)
        os.dup2(pipes["out"][1], 1)
        os.dup2(pipes["err"][1], 2)
        os.set_inheritable(results, False)
        os.closerange(3, results)
        os.closerange(results + 1, 256)
        sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
        printed = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
        sys.stdout = sys.__stdout__ = printed
        sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", errors="replace", closefd=False)
        sys.argv = ["program.py"]
        value = work()
        finish(printed)
        if value is not None:
            write_all(results, value.encode())
        status = 0
    except BaseException as error:
        os.write(2, ("\n" + describe(error)).encode("utf-8", "replace"))
    finally:
        os._exit(status)


def finish(printed):
    """As at the end of the interpreter: waits for threads, runs what atexit has, writes the rest of stdout."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    printed.flush()


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


def run_program(compiled, names):
    module = types.ModuleType("__main__")
    module.__dict__.update(names, stdin=sys.stdin, stdout=sys.stdout, stderr=sys.stderr)
    sys.modules["__main__"] = module
    try:
        exec(compiled, module.__dict__)
    except SystemExit:
        pass  # the output decides


def call_function(compiled, code, names, function, given):
    module = types.ModuleType("program")
    module.__dict__.update(names)
    sys.modules["program"] = module
    exec(compiled, module.__dict__)
    target = module.Solution() if "class Solution" in code else module
    value = getattr(target, function)(*arguments_of(given))
    json.dumps(value)
    return json.dumps(encode(value))


def arguments_of(given):
    """One JSON value per line. A list holds the values themselves."""
    values = [json.loads(line) for line in given.split("\n")] if isinstance(given, str) else given
    # JSON has only texts as keys. A dictionary of numbers that comes first is the only argument, as in verl.
    try:
        if isinstance(values[0], dict):
            return [{int(key): value for key, value in values[0].items()}]
    except (ValueError, IndexError):
        pass
    return values


def encode(value):
    """JSON that keeps what JSON alone would lose: whole numbers of any size, tuples, keys that are no text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return {"int": str(int(value))}
    if isinstance(value, float):
        return {"float": repr(float(value))}
    if isinstance(value, tuple):
        return {"tuple": [encode(item) for item in value]}
    if isinstance(value, list):
        return [encode(item) for item in value]
    return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}


def describe(error):
    text = traceback.format_exception_only(type(error), error)[-1].strip()
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "program.py"]
    if isinstance(error, SyntaxError) and error.filename == "program.py":
        lines.append(error.lineno)
    return f"{text} (line {lines[-1]})" if lines else text


main()
