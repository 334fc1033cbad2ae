"""Memory of the machine that a process may still take: what is available, within the limits of its control groups."""

import os

# Of a control group: its limit, what it uses, and the key of memory.stat for cached files, which the kernel gives up.
FILES = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def available_bytes(root="/"):
    """`root`: the folder that has proc and sys."""
    with open(os.path.join(root, "proc/meminfo")) as file:
        (line,) = [line for line in file if line.startswith("MemAvailable:")]
    return min([int(line.split()[1]) * 1024, *_left_in_groups(root)])


def _left_in_groups(root):
    """What the process's groups leave, of each with a limit: a group is within the limits of those above it, too."""
    for version, mount, path in _groups(root):
        parts = [part for part in path.split("/") if part]
        # A container may see a path that is not its own: then the mounted folder is its group.
        for count in range(len(parts) + 1):
            left = _left(version, os.path.join(root, "sys/fs/cgroup", mount, *parts[:count]))
            if left is not None:
                yield left


def _groups(root):
    """(version, folder below /sys/fs/cgroup, path in it) of each hierarchy that may limit memory."""
    try:
        with open(os.path.join(root, "proc/self/cgroup")) as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        # A kernel without control groups.
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            yield 2, "", path
            yield 2, "unified", path
        elif "memory" in controllers.split(","):
            yield 1, "memory", path


def _left(version, folder):
    """None where the group has no limit, or is not there."""
    limit_file, used_file, cached_key = FILES[version]
    limit, used = (_text(os.path.join(folder, name)) for name in (limit_file, used_file))
    if limit is None or used is None or limit == "max":
        return None
    stat = dict(line.split() for line in (_text(os.path.join(folder, "memory.stat")) or "").splitlines())
    return max(0, int(limit) - int(used) + int(stat.get(cached_key, 0)))


def _text(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return None
