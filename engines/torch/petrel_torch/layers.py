"""Which modules of a model are its layers."""

from .errors import InvalidInput


def layers_of(model):
    names = set(model._no_split_modules or [])
    found = [module for module in model.modules() if type(module).__name__ in names]
    if not found:
        raise InvalidInput(f"{type(model).__name__} does not say which of its modules are layers")
    return found
