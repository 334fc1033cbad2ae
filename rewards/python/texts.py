"""Checks of a scorer's arguments."""


def ground_truth_text(scorer, ground_truth):
    """The ground truth as text; a number is written out. A row that cannot be scored is an error, not the score 0."""
    if isinstance(ground_truth, str):
        return ground_truth
    if isinstance(ground_truth, (int, float)) and not isinstance(ground_truth, bool):
        return str(ground_truth)
    came = "none" if ground_truth is None else f"{ground_truth!r:.80}"
    raise ValueError(
        f"{scorer} expects a text as ground truth, got {came}: set the row's reward_model.ground_truth, or leave the row out"
    )
