"""The scorer of two fixtures: 1 for a response that begins with the right number. Its form is verl's."""


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return 1.0 if solution_str.strip().startswith(ground_truth) else 0.0
