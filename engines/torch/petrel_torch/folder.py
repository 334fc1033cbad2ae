"""A model as a folder: a whole one, or an adapter beside the base that it names."""

import json
import os

import torch
from safetensors import SafetensorError, safe_open

from .errors import InvalidInput
from .model import build, classes, head_of, read_config
from .names import held, stored_tensors

CONFIG = "adapter_config.json"


def adapter_of(folder):
    """None for the folder of a whole model."""
    path = os.path.join(folder, CONFIG)
    if not os.path.exists(path):
        return None
    try:
        # peft takes a second to load, and only adapters need it.
        from .adapter import Adapter
    except ImportError as error:
        raise InvalidInput(f"an adapter needs peft beside torch: {error}") from error
    return Adapter(folder, path)


class ModelFolder:
    def __init__(self, folder, head):
        self.folder, self.head = folder, head
        self.adapter = adapter_of(folder)
        self.base = folder if self.adapter is None else self.adapter.base
        self.config = read_config(self.base, head)

    def build(self):
        """The model without weights, and the tensors that its state has."""
        model = build(self.base, self.head, self.config)
        self.head_names = head_names(model, self.head)
        self.files = stored_tensors(model)
        if self.adapter is None:
            return model, self.files
        self.adapter.inject(model, self.head_names)
        return model, self.adapter.stored_tensors(model)

    def load_base(self, state, tick):
        """Loads the weights of an adapter's base, which do not belong to the state and never change."""
        if self.adapter is not None:
            own = {one.source for one in state.stored}
            self._load_model([piece for piece in state.pieces if piece.name not in own], self.base, False, tick)

    def load(self, state, folder, new_head, tick):
        """The state's weights, without moments. `new_head`: the head starts at 0, and the folder need not have it."""
        if self.adapter is None:
            self._load_model(state.pieces, folder, new_head, tick)
        else:
            self._load_adapter(state, folder, new_head, tick)
        for piece in state.pieces:
            piece.forget_moments()

    def _load_adapter(self, state, folder, new_head, tick):
        """A head that the adapter's file does not have is the base's, or starts at 0."""
        tensors = self.adapter.tensors(folder)
        pieces = {piece.name: piece for piece in state.pieces}
        of_base = []
        for one in state.stored:
            values = tensors.pop(one.name, None)
            if values is None and one.source in self.head_names:
                if not new_head:
                    of_base.append(pieces[one.source])
                    continue
                values = torch.zeros(one.shape)
            if values is None:
                raise InvalidInput(f"{folder} has no tensor {one.name}")
            if tuple(values.shape) != one.shape:
                raise InvalidInput(f"{folder}: {one.name} has the shape {list(values.shape)}, not {list(one.shape)}")
            pieces[one.source].take(values)
        if tensors:
            raise InvalidInput(f"{folder}: {min(tensors)} belongs to no layer of the adapter's config")
        if of_base:
            self._load_model(of_base, self.base, False, tick)

    def _load_model(self, pieces, folder, new_head, tick):
        """From the folder's files, tensor by tensor; from transformers where they have other names or types."""
        wanted = {base_name(piece.name): piece for piece in pieces}
        zeros = self.head_names & wanted.keys() if new_head else frozenset()
        read = [one for one in self.files if one.source in wanted and one.source not in zeros]
        files = files_with(folder, {one.name: one for one in read})
        if files is None:
            self._load_by_transformers(wanted, folder, new_head, tick)
            return
        for name in zeros:
            wanted[name].weights.zero_()
        for path, tensors in files.items():
            with safe_open(path, framework="pt") as file:
                for one in tensors:
                    wanted[one.source].take_part(one.first, file.get_tensor(one.name).reshape(-1))
                    tick()

    def _load_by_transformers(self, wanted, folder, new_head, tick):
        """Takes memory for the whole model in fp32."""
        try:
            model, info = classes[self.head].from_pretrained(
                folder, config=self.config, dtype=torch.float32, local_files_only=True, output_loading_info=True
            )
        except (OSError, ValueError, RuntimeError) as error:
            raise InvalidInput(f"transformers cannot load the weights of {folder}: {error}") from error
        optional = self.head_names if new_head else self.head_names - wanted.keys()
        missing = sorted(set(info["missing_keys"]) - optional)
        if missing:
            raise InvalidInput(f"{folder} has no tensor {missing[0]}")
        if info["mismatched_keys"]:
            raise InvalidInput(
                f"{folder}: a tensor has another shape than the model's: {info['mismatched_keys'][0]}"
            )
        values = held(model)
        for name, piece in wanted.items():
            found = values[name].detach()
            piece.take(torch.zeros_like(found) if new_head and name in self.head_names else found)
            tick()


# Types whose values are the weights themselves: those of quantised models need scales beside them.
PLAIN = frozenset({"F32", "BF16", "F16"})


def files_with(folder, tensors):
    """
    Path of a file of safetensors -> which of `tensors`, by name, it has. None where the folder lacks one, or has one in
    another shape or type.
    """
    found, missing = {}, dict(tensors)
    try:
        for path in files_of(folder):
            with safe_open(path, framework="pt") as file:
                for key in missing.keys() & file.keys():
                    values = file.get_slice(key)
                    if tuple(values.get_shape()) != missing[key].shape or values.get_dtype() not in PLAIN:
                        return None
                    found.setdefault(path, []).append(missing.pop(key))
    except (OSError, SafetensorError, ValueError, KeyError):
        return None
    return None if missing else {path: sorted(some, key=lambda one: one.name) for path, some in found.items()}


def files_of(folder):
    """The files of safetensors that transformers would read: one, or those of an index."""
    whole = os.path.join(folder, "model.safetensors")
    if os.path.exists(whole):
        return [whole]
    with open(whole + ".index.json") as file:
        return [os.path.join(folder, name) for name in sorted(set(json.load(file)["weight_map"].values()))]


def base_name(name):
    """Name of a parameter in a model without an adapter."""
    return name.replace(".base_layer.", ".")


def head_names(model, head):
    """Names of the parameters of a head of values or scores."""
    if head == "tokens":
        return set()
    own = {id(parameter) for parameter in head_of(model).parameters()}
    return {name for name, parameter in model.named_parameters() if id(parameter) in own}
