"""math-verify (verl: `reward_score/math_verify.py`): 1 when the package math-verify finds the ground truth in the
response, else 0. The ground truth is read as the content of a LaTeX box, the response as LaTeX or as an expression.

An error of the package and a comparison that takes too long score 0, as in verl, whose limit is 30 s.
"""

from limits import is_true_within
from math_verify.grader import verify
from math_verify.parser import ExprExtractionConfig, LatexExtractionConfig, parse
from texts import ground_truth_text


def compute_score(data_source, solution_str, ground_truth, extra_info, comparison_timeout=8, **others):
    """Settings: comparison_timeout, in seconds. Others are ignored, since rows of several scorers share them."""
    truth = ground_truth_text("math_verify", ground_truth)
    acc = is_true_within(comparison_timeout, lambda: is_right(solution_str, truth))
    return {"score": 1.0 if acc else 0.0, "acc": acc}


def is_right(response, truth):
    wanted = parse("\\boxed{" + truth + "}", (LatexExtractionConfig(),))
    given = parse(response, (ExprExtractionConfig(), LatexExtractionConfig()))
    return any(verify(gold, answer) for answer in given for gold in wanted)
