"""
The calls of a sampler that decodes with transformers' own model and cache, one token for every live sample at a time:
core/ports/sampler.ts. It is for machines that have only torch, and slow.
"""

import copy
import warnings
from dataclasses import dataclass, field

import torch
import torch.distributed as dist
from transformers import DynamicCache
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from .errors import InvalidInput
from .names import held
from .sampler_model import SamplerModel, seed_of

# transformers 5.24 begins to call the argument `cache`; every 5 accepts this name.
warnings.filterwarnings("ignore", message=".*past_key_values.*", category=FutureWarning)

STOP, LENGTH = 1, 2


@dataclass
class Sample:
    key: int
    tokens: list
    random: torch.Generator
    finish: int = 0


@dataclass
class Together:
    """Samples that are decoded together: they have one prompt, and their responses are equally long."""

    request: dict
    samples: list
    cache: DynamicCache | None = None
    logits: torch.Tensor | None = field(default=None, repr=False)


class Decoding(SamplerModel):
    calls = ("loadFolder", "put", "get", "loaded", "room", "submit", "step", "abort", "reset", "close")

    def __init__(self, group, shared, args):
        if group.ranks != 1:
            raise InvalidInput("the hf sampler has one rank")
        super().__init__(group, shared, args, group.device)
        # The weights as they were loaded, and as they compute.
        self.computing = self.model
        if self.dtype != torch.float32:
            self.computing = copy.deepcopy(self.model)
            for parameter in self.computing.parameters():
                parameter.data = parameter.data.to(self.dtype)
        self.most, self.longest = 1, self.config.max_position_embeddings
        self.waiting, self.live = [], []

    def loaded(self, _args):
        self.reset({})
        if self.computing is not self.model:
            values, computing = held(self.model), held(self.computing)
            for name in {one.source for one in self.stored}:
                computing[name].data.copy_(values[name])

    def room(self, args):
        self.most, self.longest = args["maxSeqs"], args["maxModelLen"]
        self.reset({})

    def submit(self, request):
        whole = len(request["prompt"]) + request["maxNewTokens"]
        if whole > self.longest:
            raise InvalidInput(f"a prompt and response of {whole} tokens; there is room for {self.longest}")
        for one in request["samples"]:
            sample = Sample(one["key"], list(one.get("prefix", [])), generator(one["random"], self.group.device))
            self.waiting.append((request, sample))

    def abort(self, args):
        key = args["key"]
        self.waiting = [(request, sample) for request, sample in self.waiting if sample.key != key]
        self._keep(lambda sample: sample.key != key)

    def reset(self, _args):
        self.waiting, self.live = [], []

    @torch.no_grad()
    def step(self, _args):
        self._admit()
        made = {"keys": [], "tokens": [], "logProbs": [], "samplingLogProbs": [], "finish": []}
        for together in self.live:
            self._advance(together, made)
            self.group.tick()
        self._keep(lambda sample: sample.finish == 0)
        return made

    def _admit(self):
        free = self.most - sum(len(together.samples) for together in self.live)
        taken, self.waiting = self.waiting[:free], self.waiting[free:]
        for request, sample in taken:
            last = self.live[-1] if self.live else None
            # What a sample has generated before it was cut off is part of its own prompt.
            if (
                last
                and last.cache is None
                and last.request is request
                and not (sample.tokens or last.samples[0].tokens)
            ):
                last.samples.append(sample)
            else:
                self.live.append(Together(request, [sample]))

    def _advance(self, together, made):
        request, samples = together.request, together.samples
        if together.cache is None:
            together.cache = DynamicCache(config=self.config)
            ids = [request["prompt"] + samples[0].tokens]
        else:
            ids = [[sample.tokens[-1]] for sample in samples]
        out = self.computing(
            input_ids=torch.tensor(ids, device=self.group.device),
            past_key_values=together.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits = out.logits[:, -1].float()
        if len(ids) < len(samples):
            together.cache.batch_repeat_interleave(len(samples))
            logits = logits.expand(len(samples), -1)
        self._draw(request, samples, logits, made)

    def _draw(self, request, samples, logits, made):
        settings = request["sampling"]
        greedy = settings["temperature"] == 0
        given = torch.log_softmax(logits if greedy else logits / settings["temperature"], dim=-1)
        filtered = torch.log_softmax(self._filtered(request, samples, logits), dim=-1)
        stops = set(request["stopTokens"])
        for row, sample in enumerate(samples):
            if greedy:
                token = int(filtered[row].argmax())
            else:
                token = int(torch.multinomial(filtered[row].exp(), 1, generator=sample.random))
            sample.tokens.append(token)
            if token in stops:
                sample.finish = STOP
            elif len(sample.tokens) >= request["maxNewTokens"]:
                sample.finish = LENGTH
            made["keys"].append(sample.key)
            made["tokens"].append(token)
            made["logProbs"].append(float(given[row, token]))
            made["samplingLogProbs"].append(0.0 if greedy else float(filtered[row, token]))
            made["finish"].append(sample.finish)

    def _filtered(self, request, samples, logits):
        settings = request["sampling"]
        ids = torch.tensor([request["prompt"] + sample.tokens for sample in samples], device=logits.device)
        if settings["repetitionPenalty"] != 1:
            logits = RepetitionPenaltyLogitsProcessor(settings["repetitionPenalty"])(ids, logits.clone())
        if settings["temperature"] > 0:
            logits = logits / settings["temperature"]
        if settings["topK"] > 0:
            logits = TopKLogitsWarper(settings["topK"])(ids, logits)
        if settings["topP"] < 1:
            logits = TopPLogitsWarper(settings["topP"])(ids, logits)
        if settings["minP"] > 0:
            logits = MinPLogitsWarper(settings["minP"])(ids, logits)
        return logits

    def _keep(self, wanted):
        """Goes on with these samples only."""
        for together in self.live:
            rows = [row for row, sample in enumerate(together.samples) if wanted(sample)]
            if len(rows) == len(together.samples):
                continue
            if rows and together.cache is not None:
                together.cache.batch_select_indices(torch.tensor(rows, device=self.group.device))
            together.samples = [together.samples[row] for row in rows]
        self.live = [together for together in self.live if together.samples]

    def close(self, _args):
        dist.destroy_process_group()


def generator(random, device):
    """A stream of its own for each sample."""
    return torch.Generator(device=device).manual_seed(seed_of(random))
