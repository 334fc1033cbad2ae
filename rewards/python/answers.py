"""Are two mathematical answers equal? The rules of PRM800K (Lightman et al. 2023, arXiv 2305.20050), which verl has
twice: in `prime_math` and, through the package mathruler, in `geo3k`.

Two answers are equal when one of these holds:

1. Their MATH forms are the same text (Hendrycks et al. 2021, arXiv 2103.03874; rewards/math-reward.ts has the same
   rules).
2. Their plain forms are the same text: without units, currency and percent signs, LaTeX as text, in lower case.
3. Their elements are equal one by one; an answer in brackets without further brackets has elements. Fractions must
   agree as texts, so 2/4 is not 1/2. Of an integer and something else one is wrong. SymPy compares all others: the
   difference must simplify to 0.

Odd, and kept: an integer in other words (2^3, \\sqrt{49}) is wrong; expressions with more than two different letters,
with "^{" or "^(", or with an exponent of two digits are never given to SymPy.
"""

import re
from dataclasses import dataclass

from limits import is_true_within
from pylatexenc.latex2text import LatexNodes2Text
from sympy import simplify
from sympy.parsing.sympy_parser import (
    implicit_multiplication_application,
    parse_expr,
    standard_transformations,
)

UNITS = (
    *("degree", "cm", "centimeter", "meter", "mile", "second", "minute", "hour"),
    *("day", "week", "month", "year", "foot", "feet", "inch", "yard"),
)
BRACKETS = "()[]"
TRANSFORMATIONS = (*standard_transformations, implicit_multiplication_application)


@dataclass(frozen=True)
class Rules:
    """Where the two versions differ."""

    units: tuple
    # Whether a "%" without a backslash is dropped from the MATH form.
    drops_percent: bool
    # Whether spaces and braces are dropped from the plain form.
    is_compact: bool


PRIME = Rules(units=(*UNITS, "liter"), drops_percent=False, is_compact=False)
MATHRULER = Rules(units=UNITS, drops_percent=True, is_compact=True)


def are_equal(given, truth, rules, seconds):
    """`seconds`: limit of each comparison by SymPy; an answer that takes longer is wrong."""
    if math_form(given, rules) == math_form(truth, rules):
        return True
    given_form, truth_form = plain_form(given, rules), plain_form(truth, rules)
    if given_form == truth_form:
        return True
    if given_form == "":
        return False
    givens, truths = elements(given_form), elements(truth_form)
    if len(givens) != len(truths):
        return False
    if len(truths) > 1 and (given_form[0], given_form[-1]) != (truth_form[0], truth_form[-1]):
        return False
    return all(are_equal_elements(one, other, seconds) for one, other in zip(givens, truths))


# 1. MATH form


def math_form(answer, rules):
    """The text itself, without spaces around it, where the rules do not apply."""
    text = answer.strip()
    inner = content_of_text(text)
    if inner is not None:
        text = inner.strip()
    try:
        return hendrycks_form(text, rules)
    except (IndexError, ValueError):
        return text


def content_of_text(text):
    """x of \\text{x}; None for another text."""
    found = re.search(r"^\\text\{(.+?)\}$", text)
    return None if found is None else found.group(1)


def hendrycks_form(text, rules):
    for before, after in (
        *(("\n", ""), ("\\!", ""), ("\\\\", "\\"), ("tfrac", "frac"), ("dfrac", "frac"), ("\\left", "")),
        *(("\\right", ""), ("^{\\circ}", ""), ("^\\circ", ""), ("\\$", "")),
    ):
        text = text.replace(before, after)
    if text.count("\\text{ ") > 1:
        raise ValueError("two units")
    text = text.split("\\text{ ")[0]
    text = text.replace("\\\\%", "").replace("\\%", "")
    if rules.drops_percent:
        text = text.replace("%", "")
    text = text.replace(" .", " 0.").replace("{.", "{0.")
    if text == "":
        return text
    if text[0] == ".":
        text = "0" + text
    sides = text.split("=")
    if len(sides) == 2 and len(sides[0]) <= 2:
        text = sides[1]
    text = braced_fractions(braced_roots(text).replace(" ", ""))
    if text == "0.5":
        return "\\frac{1}{2}"
    return re.sub(r"\A(0|-?[1-9][0-9]*)/(0|-?[1-9][0-9]*)\Z", r"\\frac{\1}{\2}", text)


def braced_roots(text):
    """\\sqrt2 becomes \\sqrt{2}. Raises IndexError when nothing follows."""
    head, *tails = text.split("\\sqrt")
    return head + "".join("\\sqrt" + (tail if tail[0] == "{" else "{" + tail[0] + "}" + tail[1:]) for tail in tails)


def braced_fractions(text):
    """\\frac12 and \\frac1{2} become \\frac{1}{2}. Raises IndexError when nothing follows."""
    head, *tails = text.split("\\frac")
    result = head
    for tail in tails:
        if tail[0] == "{":
            result += "\\frac" + tail
        elif len(tail) == 1:
            return text
        else:
            second = "{" if tail[1] == "{" else "{" + tail[1] + "}"
            result += "\\frac{" + tail[0] + "}" + second + tail[2:]
    return result


# 2. Plain form


def plain_form(answer, rules):
    inner = content_of_text(answer)
    text = answer if inner is None else inner
    for before, after in (
        *(("\\%", "%"), ("\\$", "$"), ("$", ""), ("%", ""), (" or ", " , "), (" and ", " , ")),
        *(("million", "*10^6"), ("billion", "*10^9"), ("trillion", "*10^12")),
    ):
        text = text.replace(before, after)
    for unit in rules.units:
        text = re.sub(unit + r"(es)?(s)? *(\^[0-9]+)?", "", text)
    text = re.sub(r"\^ *\\circ", "", text)
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    text = re.sub(r",\\! *", "", text)
    number = whole_number(text)
    if number is not None:
        text = str(round(number))
    if "\\" in text:
        text = without_latex(text)
    text = re.sub("- *", "-", text)
    text = re.sub("([0-9]) +([0-9])", r"\1+\2", text)  # 7 3/4
    if rules.is_compact:
        text = text.replace(" ", "").replace("{", "").replace("}", "")
    text = text.lower()
    if is_integer(text):
        text = str(int(float(text.replace(",", ""))))
    return text


def without_latex(text):
    """The LaTeX as text, and its symbols as SymPy reads them; the LaTeX itself where that fails."""
    latex = text.replace("\\tfrac", "\\frac").replace("\\dfrac", "\\frac").replace("\\frac", " \\frac")
    try:
        plain = LatexNodes2Text().latex_to_text(latex)
    except Exception:
        return text
    for symbol, word in (("√", "sqrt"), ("π", "pi"), ("∞", "inf"), ("∪", "U"), ("·", "*"), ("×", "*")):
        plain = plain.replace(symbol, word)
    return plain.strip()


def whole_number(text):
    """The number, if the text is one that differs from an integer by at most 1e-7; else None."""
    try:
        number = float(text)
        return number if abs(number - round(number)) <= 1e-7 else None
    except (ValueError, OverflowError):
        return None


def is_integer(text):
    """1,234 is one."""
    return whole_number(without_thousands(text)) is not None


def without_thousands(text):
    """1,234,567 becomes 1234567; the commas of (1, 234) stay."""
    while True:
        shorter = re.sub(r"(\d),(\d\d\d)($|\D)", r"\1\2\3", text)
        if shorter == text:
            return text
        text = shorter


# 3. Elements


def elements(form):
    form = without_thousands(form)
    if form == "":
        return []
    inner = form[1:-1]
    if inner != "" and form[0] in BRACKETS and form[-1] in BRACKETS and not any(one in inner for one in BRACKETS):
        return [element.strip() for element in inner.split(",")]
    return [form]


def are_equal_elements(given, truth, seconds):
    if is_fraction(given) and is_fraction(truth):
        return given == truth
    if is_integer(given) != is_integer(truth):
        return False
    difference = f"({truth})-({given})"
    return is_for_sympy(difference) and is_true_within(seconds, lambda: is_zero(difference))


def is_fraction(text):
    return re.search(r"^-?[0-9]+.?/0*[1-9][0-9]*.?$", text) is not None


def is_for_sympy(expression):
    """SymPy would take forever over some powers, and read words as products of letters."""
    letters = {one for one in expression.replace("sqrt", "").replace("frac", "") if one.isalpha()}
    return len(letters) <= 2 and re.search(r"\^\{|\^\(|\^[0-9]+\^|\^[0-9][0-9]+", expression) is None


def is_zero(expression):
    try:
        return simplify(parse_expr(expression.replace("^", "**"), transformations=TRANSFORMATIONS)) == 0
    except Exception:
        return False
