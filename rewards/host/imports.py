"""Prints which files of its own folder a scorer imports, and which imports are nowhere, as JSON. Standard library only.

The scorer is read and not run. A module of its folder comes before an installed one of the same name, as when it runs.
"""

import ast
import importlib.util
import json
import os
import sys

sys.path = sys.path[1:]  # the folder of this file is no place of the scorer's modules


def parts_of(name):
    return name.split(".") if name else []


class Walk:
    def __init__(self, entry):
        self.root = os.path.dirname(entry)
        self.files = {}
        self.missing = []

    def follow(self, path, package, is_entry=False):
        """`package`: the names of the folders between the root and the file."""
        if not is_entry:
            if path in self.files:
                return
            self.files[path] = os.path.relpath(path, self.root)
        with open(path, "rb") as file:
            source = file.read()
        try:
            tree = ast.parse(source, path)
        except SyntaxError:
            return  # loading the scorer says where
        top = set(map(id, tree.body))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self.look(path, node, parts_of(alias.name), id(node) in top)
            elif isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                if node.level > len(package):
                    self.miss(path, node, "." * node.level + (node.module or ""), id(node) in top)
                    continue
                names = base + parts_of(node.module)
                own = self.look(path, node, names, id(node) in top) if names else True
                for alias in node.names if own else ():
                    self.find(names + [alias.name])

    def look(self, path, node, names, needed):
        if self.find(names):
            return True
        if self.place([names[0]]) is not None or importlib.util.find_spec(names[0]) is None:
            self.miss(path, node, ".".join(names), needed)
        return False

    def find(self, names):
        """Follows a module of the scorer's folder, and the packages that it is in. False when it is none."""
        place = self.place(names)
        if place is None:
            return False
        for count in range(1, len(names) + 1):
            inside = self.place(names[:count])
            if inside is not None and os.path.isfile(inside):
                is_package = os.path.basename(inside) == "__init__.py"
                self.follow(inside, names[:count] if is_package else names[: count - 1])
        return True

    def place(self, names):
        path = os.path.join(self.root, *names)
        init = os.path.join(path, "__init__.py")
        return next(
            (one for one in (init, path + ".py", path) if os.path.isfile(one) or one == path and has_modules(path)),
            None,
        )

    def miss(self, path, node, name, needed):
        if needed:
            self.missing.append({"file": os.path.relpath(path, self.root), "line": node.lineno, "name": name})


def has_modules(path):
    return os.path.isdir(path) and any(name.endswith(".py") for _, _, names in os.walk(path) for name in names)


walk = Walk(os.path.abspath(sys.argv[1]))
walk.follow(os.path.abspath(sys.argv[1]), [], True)
print(json.dumps({"files": sorted(walk.files.values()), "missing": walk.missing}))
