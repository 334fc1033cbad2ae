"""Geometry3K (verl: `reward_score/geo3k.py`; Lu et al. 2021, arXiv 2105.04165):

    score = (1 − format_score) · accuracy + format_score · format

accuracy: the content of the last box equals the ground truth by the rules of answers.py. format: the whole response has
the form `<think>…</think>…\\boxed{…}…`, so it begins with `<think>`.

Odd, and kept: a response without a box has the answer "None".
"""

from answers import MATHRULER, are_equal
from texts import ground_truth_text

BOX = "\\boxed{"


def compute_score(
    data_source,
    solution_str,
    ground_truth,
    extra_info,
    use_boxed=True,
    format_score=0.1,
    comparison_timeout=8,
    **others,
):
    """Settings: use_boxed (true; false: the whole response is the answer), format_score, comparison_timeout in seconds.
    Others are ignored, since rows of several scorers share them.
    """
    truth = ground_truth_text("geo3k", ground_truth)
    answer = last_box(solution_str) if use_boxed else solution_str
    accuracy = 1.0 if are_equal(answer, truth, MATHRULER, comparison_timeout) else 0.0
    form = 1.0 if has_format(solution_str) else 0.0
    score = (1.0 - format_score) * accuracy + format_score * form
    return {"score": score, "acc": accuracy == 1.0, "accuracy": accuracy, "format": form, "pred": answer}


def last_box(text):
    start = text.rfind(BOX)
    content = text[start + len(BOX) :] if start != -1 else ""
    depth = 0
    for position, character in enumerate(content):
        depth += (character == "{") - (character == "}")
        if depth == -1:
            return content[:position].strip()
    return "None"


def has_format(text):
    """<think>, </think>, a box and its brace, in this order, from the first character on."""
    position = 0
    if not text.startswith("<think>"):
        return False
    for part in ("<think>", "</think>", BOX, "}"):
        found = text.find(part, position)
        if found == -1:
            return False
        position = found + len(part)
    return True
