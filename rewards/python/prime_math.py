"""PRIME's mathematics (verl: `reward_score/prime_math`; Cui et al. 2025, arXiv 2502.01456): 1 for a right answer, else
0.

The answer is found by its words ("answer:", "answer is", …, a box, "be ", "is ", "=" …). It is right when it equals the
ground truth by the rules of answers.py, or else by those of ToRA (Gou et al. 2023, arXiv 2309.17452), `is_equal` below.

Odd, and kept:
- Numbers may differ by a factor of 100, since one may be a percentage: 0.5 = 50 = 5000. Their relative tolerance is
  1e-4.
- With π in either text, it is tried as 3.14159… and as 3.14. The text is then calculated, so 2^3 with π is an error.
- The number before "_" stands for a number with a base: 101_2 is 101.
- The symbolic comparison at the end of ToRA's rules never works in verl: its time limit raises an error. It is left
  out.
- A right answer by the first rules has the right format, whatever it looks like.

Other than in verl, nothing that a response wrote is run as Python: numbers_only.py.
"""

import math
import re

import numbers_only
from answers import PRIME, are_equal
from limits import is_true_within
from texts import ground_truth_text

TOLERANCE = 1e-4
LONGEST = 1000


def compute_score(data_source, solution_str, ground_truth, extra_info, comparison_timeout=8, **others):
    """Settings: comparison_timeout, the limit in seconds of each comparison by SymPy; 10 in verl. Others are ignored,
    since rows of several scorers share them.
    """
    truth = ground_truth_text("prime_math", ground_truth)
    is_matched, answer = find_answer(solution_str)
    has_format = "Step 2:" in solution_str and "\\box" in solution_str
    if are_equal(answer, truth, PRIME, comparison_timeout):
        acc, has_format = True, True
    else:
        acc = is_equal_by_tora(answer, truth, comparison_timeout)
    return {
        "score": 1.0 if acc else 0.0,
        "acc": acc,
        "format_correct": has_format,
        "is_matched": is_matched,
        "pred": answer,
    }


# Finding the answer


def find_answer(response):
    """The answer, and whether one of the words was found. An answer must have a digit for that."""
    text, is_matched = response, False
    for words in ("answer:", "answer is", "answers are"):
        position = text.lower().rfind(words)
        if position != -1:
            text, is_matched = text[position + len(words) :].strip(), True
    for words in ("is answer", "is the answer", "are answers", "are the answers"):
        position = text.lower().rfind(words)
        if position != -1:
            text, is_matched = text[:position].strip(), True
    box = last_box(text)
    if box:
        text, is_matched = box, True
    if ". " in text:
        text = text[: text.lower().rfind(". ")].strip()
    for words in ("be ", "is ", "are ", "=", ": ", "get ", "be\n", "is\n", "are\n", ":\n", "get\n"):
        position = text.lower().rfind(words)
        if position != -1:
            text, is_matched = text[position + len(words) :].strip(), True
    return is_matched and any(character.isdigit() for character in text), text


def last_box(text):
    """Content of the last \\boxed or, without one, \\fbox; None when there is none or its braces are not balanced."""
    start = text.rfind("\\boxed")
    if start == -1:
        start = text.rfind("\\fbox")
    if start == -1:
        return None
    first, open_braces = None, 0
    for position in range(start, len(text)):
        if text[position] == "{":
            open_braces += 1
            first = position if first is None else first
        elif text[position] == "}":
            open_braces -= 1
            if open_braces == 0:
                return None if first is None else text[first + 1 : position].strip()
    return None


# ToRA's rules


def is_equal_by_tora(answer, truth, seconds):
    """An error anywhere is a wrong answer, and so is a calculation that takes too long."""
    if "\\pi" in answer or "\\pi" in truth:
        return is_true_within(seconds, lambda: any([is_equal(answer, truth, pi) for pi in (math.pi, 3.14)]))
    if "\\begin{pmatrix}" in truth:
        return is_true_within(seconds, lambda: is_equal(answer, truth))
    try:
        return is_equal(answer, truth)
    except Exception:
        return False


def is_equal(answer, truth, pi=math.pi):
    """`answer` may be an element of a matrix, too. Raises an error where the rules do not apply."""
    given, wanted = calculated(answer, pi), calculated(truth, pi)
    if isinstance(given, str):
        given = given[:LONGEST]
        if isinstance(wanted, str) and are_same_texts(given, wanted):
            return True
    given_number, wanted_number = number_of(given), number_of(wanted)
    if given_number is not None and wanted_number is not None:
        return are_same_numbers(given_number, wanted_number)
    if not given and given not in [0, False]:
        return False
    return are_same_expressions(without_interval_name(str(given).strip()), str(wanted).strip())


def calculated(answer, pi):
    """A text without its currency or percent sign, the number before "_", or the value with π; else the answer."""
    if not isinstance(answer, str):
        return answer
    if re.match(r"\$\d+(\.\d+)?", answer):
        return answer[1:]
    if re.match(r"^\d+(\.\d+)?\\?%$", answer):
        return answer.replace("\\%", "").replace("%", "")
    if "_" in answer:
        return int(float(answer.split("_")[0]))
    return with_pi(answer, pi) if "\\pi" in answer else answer


def with_pi(text, pi):
    """The value of the text with the number in place of \\pi; the text with the number where it has no value."""
    position = text.find("\\pi")
    while position != -1:
        factor = f"*{pi}" if position > 0 and text[position - 1].isdigit() else f"1*{pi}"
        text = text[:position] + factor + text[position + 3 :]
        position = text.find("\\pi", position + 1)
    try:
        return numbers_only.evaluate(text)
    except Exception:
        return text


def are_same_texts(a, b):
    return a.strip().lower() == b.strip().lower() or a.replace(" ", "") == b.replace(" ", "")


def number_of(value):
    """1,234 and 1{,}234 are numbers."""
    text = str(value)
    try:
        return float(text.replace("{,}", "") if "{,}" in text else text.replace(",", ""))
    except ValueError:
        return None


def are_same_numbers(given, wanted):
    return any(math.isclose(number, given, rel_tol=TOLERANCE) for number in (wanted / 100, wanted, wanted * 100))


def without_interval_name(text):
    """SymPy's Interval.open(1, 2) becomes (1, 2)."""
    for name, left, right in (
        *(("Interval", "[", "]"), ("Interval.Ropen", "[", ")")),
        *(("Interval.Lopen", "(", "]"), ("Interval.open", "(", ")")),
    ):
        found = re.match(rf"^{re.escape(name)}\((.*)\)$", text)
        if found:
            return left + found.group(1) + right
    return text


def are_same_expressions(given, wanted):
    if are_same_without_brackets(given, wanted):
        return True
    if given and wanted and given[0] in "([" and given[-1] in ")]" and (given[0], given[-1]) == (wanted[0], wanted[-1]):
        if are_same_lists(given[1:-1].split(","), wanted[1:-1].split(",")):
            return True
    if "," in given and "," in wanted:
        givens, wanteds = [[item.strip() for item in text.split(",")] for text in (given, wanted)]
        if len(givens) == len(wanteds):
            return are_same_lists(givens, wanteds)
    if given.startswith("Point") and wanted[0] == "(" and wanted[-1] == ")":
        if are_same_lists(given[given.find("(") + 1 : -1].split(","), wanted[1:-1].split(",")):
            return True
    return "\\begin{pmatrix}" in wanted and is_same_matrix(given, wanted)


def are_same_without_brackets(given, wanted):
    """Are the texts the same without braces and parentheses, and sometimes without square brackets around them?"""
    is_list = given.startswith("[") and given.endswith("]") and not wanted.startswith("(")
    is_tuple = given.startswith("(") and given.endswith(")") and not wanted.startswith("[")
    if is_list or is_tuple:
        given, wanted = given.strip("[]()"), wanted.strip("[]()")
    return re.sub("[{}()]", "", given) == re.sub("[{}()]", "", wanted)


def are_same_lists(givens, wanteds):
    """Every element is compared, since an error in any of them is an error of the whole."""
    return len(givens) == len(wanteds) and all([is_equal(one, other) for one, other in zip(givens, wanteds)])


def is_same_matrix(given, wanted):
    if given.startswith("Matrix"):
        try:
            return are_same_lists(list(numbers_only.matrix(given)), wanted.split()[1:-1:2])
        except Exception:
            return False
    if not (given.startswith("[") and given.endswith("]")):
        return False
    rows = numbers_only.evaluate(given)
    if not isinstance(rows, list):
        return False
    inner = wanted
    for prefix in ("\\\\begin{pmatrix}", "\\begin{pmatrix}"):
        inner = inner.removeprefix(prefix)
    for suffix in ("\\\\end{pmatrix}", "\\end{pmatrix}"):
        inner = inner.removesuffix(suffix)
    try:
        return are_same_lists(rows, [row.split("&") if "&" in row else row for row in inner.split("\\")])
    except Exception:
        return False
