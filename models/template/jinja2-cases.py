"""Refreshes jinja2-cases.json: what jinja2, set up as transformers does, gives for each template in it, null for a
refusal.
"""
import copy
import json
import pathlib

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
environment.filters["tojson"] = tojson
environment.globals["raise_exception"] = raise_exception

DATA = {
    "s": "Hello, Wörld! 😀",
    "t": "  a b\tc \n d ",
    "e": "",
    "n": None,
    "i": 7,
    "z": 0,
    "f": 2.5,
    "b": True,
    "l": [3, 1, 2],
    "w": ["b", "A", "c", "a"],
    "m": [{"a": 1, "b": "x"}, {"a": 2, "b": "Y"}, {"a": 1, "b": "z"}],
    "d": {"k": 1, "a": [1, {"b": None}], "items": 5, "x y": "q"},
    "nest": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3, "c": [{"v": 4, "c": []}]}]}],
    "messages": [{"role": "user", "content": "hi"}],
}

path = pathlib.Path(__file__).parent / "jinja2-cases.json"
cases = []
for template, _ in json.loads(path.read_text())["cases"]:
    try:
        # A copy each time: jinja2's own `indent` extends a list in place before it refuses it.
        expected = environment.from_string(template).render(**copy.deepcopy(DATA))
    except Exception:  # noqa: BLE001 - any refusal counts
        expected = None
    cases.append(json.dumps([template, expected], ensure_ascii=False))
head = json.dumps({"source": f"jinja2 {jinja2.__version__}", "data": DATA}, ensure_ascii=False)
path.write_text(head[:-1] + ', "cases": [\n' + ",\n".join(cases) + "\n]}\n")
print(len(cases), "cases,", sum(case.endswith("null]") for case in cases), "refused")
