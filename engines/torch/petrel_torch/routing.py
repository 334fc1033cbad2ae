"""
Mixtures of experts: which experts get the tokens of a pass, and the auxiliary loss that spreads the tokens over them.
With L routers, each of which sends each of N tokens to k of E experts, as transformers has it (Fedus et al. 2021,
"Switch Transformers", equations 4 to 6, over all routers together):

    loss = E sum_e f_e P_e     f_e = tokens that expert e gets / (L N)
    P_e = sum of p_e over routers and tokens / (L N)

where p is the softmax of a router's logits. Tokens that are spread evenly give k. f has no gradient.
"""

import inspect
from contextlib import contextmanager

import torch

# What transformers' modules of experts call the choice of the router.
CHOICES = ("top_k_index", "router_indices", "selected_experts")


class Routing:
    def __init__(self, modules, routers):
        """`modules`: (experts, name of the choice) of each layer. `routers`: (router, index of its logits), or none."""
        self.layers, self.experts = len(modules), modules[0][0].num_experts
        self.has_loss = len(routers) == len(modules)
        self.recording = False
        self.chosen, self.logits = [], []
        for module, choice in modules:
            module.register_forward_pre_hook(self._choose(module, choice), with_kwargs=True)
        if self.has_loss:
            for router, index in routers:
                router.register_forward_hook(self._score(index))

    @staticmethod
    def of(model):
        """None for a model without experts, or whose layers do not tell what their routers chose."""
        modules = [(module, choice) for module in model.modules() if (choice := _choice_of(module)) is not None]
        if not modules or len({module.num_experts for module, _ in modules}) != 1:
            return None
        return Routing(modules, _routers_of(model) if hasattr(type(model.config), "router_aux_loss_coef") else [])

    @contextmanager
    def recorded(self):
        """What happens within is one pass. Layers that are computed again in a backward pass are none."""
        self.chosen, self.logits, self.recording = [], [], True
        try:
            yield
        finally:
            self.recording = False

    @property
    def outputs(self):
        return ["expertTokens", "routerLoss"] if self.has_loss else ["expertTokens"]

    def of_pass(self, wants, rows, over):
        """
        {output: tensor} of the pass that was recorded last. `rows`: how many of its first tokens count. `over(tensor)`:
        the sum over the ranks that have shares of these tokens.
        """
        tokens = over(self._tokens(rows))
        made = {"expertTokens": tokens}
        if "routerLoss" in wants:
            made["routerLoss"] = Summed.apply(self._loss(tokens, rows, over), over)
        self.chosen, self.logits = [], []
        return made

    def _tokens(self, rows):
        """[layers, experts], int32: of the pass, what each expert got."""
        chosen = [one.reshape(-1, one.shape[-1])[:rows].reshape(-1) for one in self.chosen]
        return torch.stack([torch.bincount(one, minlength=self.experts)[: self.experts] for one in chosen]).int()

    def _loss(self, tokens, rows, over):
        """[1]: what this rank's tokens add to it."""
        all_rows = over(torch.tensor(rows * len(self.logits), device=tokens.device))
        share = sum(logits[:rows].float().softmax(-1).sum(0) for logits in self.logits) / all_rows
        return self.experts * (tokens.sum(0) / all_rows * share).sum()[None]

    def _choose(self, module, choice):
        place = list(inspect.signature(module.forward).parameters).index(choice)

        def hook(_module, args, kwargs):
            if self.recording:
                self.chosen.append((kwargs[choice] if choice in kwargs else args[place]).detach())

        return hook

    def _score(self, index):
        def hook(_module, _args, out):
            if self.recording:
                logits = out[index] if isinstance(out, tuple) else out
                self.logits.append(logits.reshape(-1, logits.shape[-1]))

        return hook


class Summed(torch.autograd.Function):
    """The sum over ranks, of which each gets the gradient of its own part."""

    @staticmethod
    def forward(_ctx, part, over):
        return over(part.clone())

    @staticmethod
    def backward(_ctx, gradient):
        return gradient, None


def _choice_of(module):
    if not hasattr(module, "num_experts"):
        return None
    names = inspect.signature(module.forward).parameters
    return next((name for name in CHOICES if name in names), None)


def _routers_of(model):
    """The modules from which transformers itself takes the logits of routers."""
    recorders = (model._can_record_outputs or {}).get("router_logits")
    if recorders is None:
        return []
    recorders = recorders if isinstance(recorders, (list, tuple)) else [recorders]
    kinds = [(getattr(one, "target_class", one), getattr(one, "index", 0)) for one in recorders]
    return [
        (module, index)
        for module in model.modules()
        for kind, index in kinds
        if isinstance(kind, type) and isinstance(module, kind)
    ]
