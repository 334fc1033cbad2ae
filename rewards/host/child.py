"""A scorer process for Python modules: the line protocol of docs/do/scorers.md, standard library only.

Replies go to a private copy of stdout; file descriptor 1 then points at stderr, so that nothing a scorer prints can
get between. Scores one sample after the other as lines come in, and ends with its input.
"""

import asyncio
import importlib.util
import inspect
import json
import math
import os
import resource
import sys
import traceback

def take_stdio():
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), 0)
    return requests, replies


def load(path, name):
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("petrel_user_scorer", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules["petrel_user_scorer"] = module
    spec.loader.exec_module(module)
    function = getattr(module, name, None)
    if not callable(function):
        raise AttributeError(f"{path} has no function {name}")
    return function


def limit_memory(megabytes):
    """What scoring may allocate on top of what loading took; beyond it Python raises MemoryError."""
    with open("/proc/self/status", encoding="ascii") as status:
        used = next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmData:")), 0)
    limit = used + megabytes * 1024 * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.getrlimit(resource.RLIMIT_DATA)[1]))


# The keywords of verl's signature, and what a sample calls them. A scorer of lists gets them in the plural.
KEYWORDS = {
    "data_source": "dataSource",
    "solution_str": "solutionStr",
    "ground_truth": "groundTruth",
    "extra_info": "extraInfo",
}


def call(function, settings, request):
    if request["type"] == "score":
        given = {keyword: request["input"].get(name) for keyword, name in KEYWORDS.items()}
    else:
        given = {keyword + "s": [one.get(name) for one in request["inputs"]] for keyword, name in KEYWORDS.items()}
    value = function(**given, **settings)
    return asyncio.run(value) if inspect.isawaitable(value) else value


def to_number(value):
    try:
        number = float(value) if not isinstance(value, (str, bytes)) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"a scorer must give a finite number, got {value!r:.80}")
    return number


def to_column(value):
    if isinstance(value, (bool, str)) or value is None:
        return value
    if hasattr(value, "item") and callable(value.item):
        try:
            value = value.item()
        except (TypeError, ValueError):
            return str(value)
    if isinstance(value, (int, float)):
        return value if math.isfinite(value) else None
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return str(value)


def to_scored(value):
    if isinstance(value, (list, tuple)):
        return to_scored(value[0] if value else None)
    if isinstance(value, dict):
        if "score" not in value:
            raise ValueError(f"a scorer's dict needs 'score', got {value!r:.80}")
        columns = {str(key): to_column(item) for key, item in value.items() if key != "score"}
        return to_number(value["score"]), columns
    return to_number(value), {}


def to_scored_list(value, samples):
    if not isinstance(value, (str, bytes, dict)) and hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, (list, tuple)):
        raise ValueError(f"a scorer of lists must give a list, got {value!r:.80}")
    if len(value) != samples:
        raise ValueError(f"a scorer of lists got {samples} responses and gave {len(value)} scores")
    results = []
    for place, one in enumerate(value):
        try:
            number, columns = to_scored(one)
        except Exception as error:
            raise ValueError(f"of response {place}: {error}") from error
        results.append({"score": number, "columns": columns})
    return results


def describe(error, path):
    """The error with its place: the innermost line of the user's module, else of what it called."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{type(error).__name__}: {error.msg} ({error.filename}:{error.lineno}:{error.offset})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == path] or frames
    place = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"


def score(function, settings, path, request):
    try:
        value = call(function, settings, request)
    except MemoryError:
        return {"type": "failed", "code": "memory", "reason": "the memory limit was reached"}
    except Exception as error:
        return {"type": "failed", "code": "threw", "reason": describe(error, path)}
    try:
        if request["type"] == "scoreAll":
            return {"type": "results", "results": to_scored_list(value, len(request["inputs"]))}
        number, columns = to_scored(value)
    except Exception as error:
        return {"type": "failed", "code": "bad-result", "reason": str(error)}
    return {"type": "result", "score": number, "columns": columns}


def main():
    requests, replies = take_stdio()
    mark = os.environ.get("PETREL_SCORER_MARK", "")

    def reply(message):
        replies.write("\n" + mark + json.dumps(message) + "\n")
        replies.flush()

    function, settings, path = None, {}, None
    for line in iter(requests.readline, ""):
        request = json.loads(line)
        if request["type"] != "load":
            reply({"id": request["id"], **score(function, settings, path, request)})
            continue
        try:
            path = request["module"]
            function, settings = load(path, request["name"]), request.get("settings") or {}
            limit_memory(request["memoryMb"])
        except BaseException as error:
            reply({"type": "unloadable", "reason": describe(error, path)})
        else:
            reply({"type": "ready"})


main()
