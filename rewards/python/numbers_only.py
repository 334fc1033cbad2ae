"""Evaluates what a response wrote, without running it. The reference passes it to Python's `eval`, so a response could
run any code. Here only values, sequences and operators are evaluated; names, calls and attributes are refused.
"""

import ast
import builtins
import operator
import re

from sympy.parsing.sympy_parser import parse_expr

BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
UNARY = {ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Not: operator.not_, ast.Invert: operator.invert}
COMPARE = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def evaluate(text):
    """The value of a Python expression. Raises an error for anything but values, sequences and operators."""
    return value_of(ast.parse(text.lstrip(" \t"), mode="eval").body)


def value_of(node):
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple):
        return tuple(value_of(item) for item in node.elts)
    if isinstance(node, ast.List):
        return [value_of(item) for item in node.elts]
    if isinstance(node, ast.Set):
        return {value_of(item) for item in node.elts}
    if isinstance(node, ast.UnaryOp):
        return UNARY[type(node.op)](value_of(node.operand))
    if isinstance(node, ast.BinOp):
        return BINARY[type(node.op)](value_of(node.left), value_of(node.right))
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return COMPARE[type(node.ops[0])](value_of(node.left), value_of(node.comparators[0]))
    raise ValueError(f"a {type(node).__name__} is not evaluated")


def matrix(text):
    """SymPy's Matrix of a text like Matrix([[1], [x]]). Raises ValueError for names of Python, attributes and texts."""
    names = re.findall(r"[^\W\d]\w*", text)
    if re.search(r"[\"'\\:;=]|__|\.\s*[^\W\d]", text) or any(hasattr(builtins, name) for name in names):
        raise ValueError("no plain matrix")
    return parse_expr(text)
