"""
Low-rank adapters by peft. A folder with an adapter_config.json is an adapter of the folder that it names. What the
model adds to its base is the adapter and, where it is new, the head: that alone learns, and is its state.
"""

import os
from contextlib import contextmanager

from peft import LoraConfig, PeftConfig, inject_adapter_in_model
from peft.tuners.tuners_utils import BaseTunerLayer
from safetensors import SafetensorError, safe_open

from .errors import InvalidInput
from .names import Stored

# How peft calls a model's modules in its files, and an adapter in memory.
PREFIX, NAME = "base_model.model.", "default"
# Settings of peft that add other tensors than A and B, or train others.
REFUSED = (
    "use_dora",
    "modules_to_save",
    "trainable_token_indices",
    "target_parameters",
    "layer_replication",
    "lora_bias",
    "alora_invocation_tokens",
    "use_qalora",
    "use_bdlora",
    "arrow_config",
)
# Ways to begin that leave the weights of the base as they are.
BEGINNINGS = (None, True, False, "gaussian", "orthogonal", "eva")


class Adapter:
    # The name of the file with its tensors.
    file = "adapter_model.safetensors"

    def __init__(self, folder, path):
        """`path`: of its config."""
        try:
            self.config = PeftConfig.from_pretrained(folder)
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidInput(f"peft cannot read {path}: {error}") from error
        if not isinstance(self.config, LoraConfig):
            raise InvalidInput(f"{path}: an adapter of type LORA was expected, not {self.config.peft_type}")
        for setting in REFUSED:
            if getattr(self.config, setting, None):
                raise InvalidInput(f"{path}: {setting} is not supported")
        if self.config.init_lora_weights not in BEGINNINGS:
            raise InvalidInput(f"{path}: init_lora_weights {self.config.init_lora_weights} changes the base")
        # Its values come from its file.
        self.config.init_lora_weights = True
        if self.config.bias != "none":
            raise InvalidInput(f"{path}: bias must be none, not {self.config.bias}")
        # Files say that it is: then peft would let nothing learn.
        self.config.inference_mode = False
        self.base = os.path.normpath(os.path.join(folder, self.config.base_model_name_or_path or ""))
        if not os.path.exists(os.path.join(self.base, "config.json")):
            raise InvalidInput(f"{path}: its base is no folder of a model: {self.base}")

    def inject(self, model, head_names):
        """Gives the layers of a model without memory their A and B; what does not learn needs no gradient then."""
        try:
            inject_adapter_in_model(self.config, model, adapter_name=NAME, low_cpu_mem_usage=True)
        except ValueError as error:
            raise InvalidInput(f"peft cannot put the adapter into a {type(model).__name__}: {error}") from error
        for name, parameter in model.named_parameters():
            if name in head_names:
                parameter.requires_grad_(True)
        if isinstance(model.get_output_embeddings(), BaseTunerLayer):
            raise InvalidInput("an adapter of the output head is not supported")
        model.eval()

    def stored_tensors(self, model):
        """What its file has, and the head where it learns, names ascending."""
        found = [
            Stored(PREFIX + name.replace(f".{NAME}.", "."), tuple(parameter.shape), name, 0)
            for name, parameter in model.named_parameters()
            if parameter.requires_grad
        ]
        return sorted(found, key=lambda one: one.name)

    @property
    def largest_rank(self):
        return max([self.config.r, *self.config.rank_pattern.values()])

    @staticmethod
    def tensors(folder):
        """The tensors of an adapter's file by name."""
        path = os.path.join(folder, Adapter.file)
        try:
            with safe_open(path, framework="pt") as file:
                return {name: file.get_tensor(name) for name in file.keys()}
        except (OSError, SafetensorError) as error:
            raise InvalidInput(f"the adapter's tensors cannot be read: {path}: {error}") from error

    @staticmethod
    @contextmanager
    def off(model):
        """Within it the model is its base."""
        layers = [module for module in model.modules() if isinstance(module, BaseTunerLayer)]
        # enable_adapters() would also say which parameters learn.
        for layer in layers:
            layer._disable_adapters = True
        try:
            yield
        finally:
            for layer in layers:
                layer._disable_adapters = False
