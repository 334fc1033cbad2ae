"""Runs pip with those settings of the user that say where packages are fetched from, and with none that say how or
where they are installed: `python3 -E chosen_pip.py <arguments of pip>`.

PIP_REQUIRE_VIRTUALENV, user, target, no-binary, constraint, dry-run and their like serve other work and would stop this
one. An index, a proxy or a certificate is how pip gets out of this machine at all. Files and variables are read by pip
itself.
"""

import ast
import os
import re
import subprocess
import sys

WHERE = {
    "index-url",
    "extra-index-url",
    "no-index",
    "find-links",
    "trusted-host",
    "proxy",
    "cert",
    "client-cert",
    "keyring-provider",
    "timeout",
    "default-timeout",
    "retries",
    "resume-retries",
    "cache-dir",
    "no-cache-dir",
}
# A later one wins, as in pip: the command's own section, then the environment.
SECTIONS = ["global", "{command}", ":env:"]
LINE = re.compile(r"(?P<section>:env:|[\w-]+)\.(?P<key>[\w.-]+)=(?P<value>.*)")


def without_settings():
    """The environment without pip's and Python's variables."""
    return {name: value for name, value in os.environ.items() if not re.match(r"PIP_|PYTHON", name)}


def listed():
    """What pip itself finds in its files and in the environment, as it prints it. Of files that it cannot read,
    nothing.
    """
    command = [sys.executable, "-E", "-m", "pip", "config", "list"]
    for files in ({}, {"PIP_CONFIG_FILE": os.devnull}):
        quiet = {**os.environ, "PIP_QUIET": "0", "PIP_VERBOSE": "0", "PIP_NO_COLOR": "1", **files}
        done = subprocess.run(command, env=quiet, capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout
        print(f"pip cannot read its files of settings, so none is used: {done.stderr.strip()}", file=sys.stderr)
    return ""


def chosen(command):
    """name → text of the settings that are kept, for this command of pip."""
    order = [section.format(command=command) for section in SECTIONS]
    found = {}
    for line in listed().splitlines():
        match = LINE.fullmatch(line)
        if match is None or match["section"] not in order or match["key"] not in WHERE:
            continue
        found[(order.index(match["section"]), match["key"])] = ast.literal_eval(match["value"])
    return {key: found[(place, key)] for place, key in sorted(found)}


def main(arguments):
    kept = {f"PIP_{key.upper().replace('-', '_')}": str(value) for key, value in chosen(arguments[0]).items()}
    fixed = {"PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    environment = {**without_settings(), **kept, **fixed, "PIP_ROOT_USER_ACTION": "ignore"}
    os.execve(sys.executable, [sys.executable, "-E", "-m", "pip", *arguments], environment)


main(sys.argv[1:])
