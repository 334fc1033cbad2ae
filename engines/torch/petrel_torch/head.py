"""
What a language model's head gives at chosen rows, in chunks, so that the logits of a whole pack never exist at once.
With z the logits after the model's own scale and soft cap, T the temperature and p = softmax(z / T):

    logProb = log p[target]     entropy H = -sum p log p     sumPiSquared = sum p^2

    d logProb / dz = (1[target] - p) / T          d H / dz = -p (log p + H) / T
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

# Rows of a chunk: at most so many, and at most so many that its arrays, ROW bytes for each row and word in the backward
# pass, stay within a bound. Each chunk reads the head's weight: a GPU, which is quick to compute, gets larger ones. For
# 151,936 words, 896 wide, in fp32, a processor took 8.3 s of its time and 1.2 GiB for 512 rows in chunks of 252; in one
# chunk 6.9 s and 2.1 GiB, in chunks of 126 9.6 s and 0.8 GiB.
ROWS, ROW = 4096, 28
MOST = {"cpu": 2**30, "cuda": 2**32}


def chunks(rows, weight):
    size = max(1, min(ROWS, MOST[weight.device.type] // (ROW * weight.shape[0])))
    return [slice(start, start + size) for start in range(0, max(1, rows), size)]


def plus(sum_, more):
    """Several chunks are summed in fp32, of which each may be a small part."""
    return more if sum_ is None else sum_.float().add_(more)


@dataclass(frozen=True)
class LogitForm:
    """logits = cap * tanh(scale * product / cap), without a cap scale * product."""

    scale: float = 1.0
    cap: float | None = None

    @staticmethod
    def of(config):
        scale = float(getattr(config, "logit_scale", None) or 1.0) / float(
            getattr(config, "logits_scaling", None) or 1.0
        )
        return LogitForm(scale, getattr(config, "final_logit_softcapping", None))

    def apply(self, product):
        logits = product.float()
        if self.scale != 1.0:
            logits = logits * self.scale
        return logits if self.cap is None else torch.tanh(logits / self.cap) * self.cap

    def derivative(self, logits):
        """d logits / d product, of the logits; None where it is 1."""
        slope = None if self.cap is None else 1 - (logits / self.cap) ** 2
        if self.scale == 1.0:
            return slope
        return torch.full_like(logits, self.scale) if slope is None else slope * self.scale


class HeadOutputs(torch.autograd.Function):
    """
    (hidden [P, H], weight [V, H], bias [V] or None, targets [P] or None, temperature, form, wants, topK) ->
    (logProbs [P], entropy [P], {name: what is not differentiable}).
    """

    @staticmethod
    def forward(ctx, hidden, weight, bias, targets, temperature, form, wants, top_k):
        ctx.save_for_backward(hidden, weight, bias, targets)
        ctx.temperature, ctx.form = temperature, form
        ctx.set_materialize_grads(False)
        rows = hidden.shape[0]
        log_probs = hidden.new_zeros(rows, dtype=torch.float32)
        entropy = hidden.new_zeros(rows, dtype=torch.float32)
        others = {name: [] for name in ("sumPiSquared", "logits", "topTokens", "topLogProbs") if name in wants}
        for part in chunks(rows, weight):
            logits = form.apply(F.linear(hidden[part], weight, bias))
            log_p = torch.log_softmax(at_temperature(logits, temperature), dim=-1)
            if "logProbs" in wants:
                log_probs[part] = log_p.gather(1, targets[part, None]).squeeze(1)
            if "entropy" in wants:
                entropy[part] = entropy_of(log_p)
            if "sumPiSquared" in others:
                others["sumPiSquared"].append((2 * log_p).exp().sum(-1))
            if "logits" in others:
                others["logits"].append(logits)
            if "topTokens" in others or "topLogProbs" in others:
                # Stable: of equals the lower id comes first.
                values, tokens = torch.sort(log_p, dim=-1, descending=True, stable=True)
                if "topTokens" in others:
                    others["topTokens"].append(tokens[:, :top_k].int())
                if "topLogProbs" in others:
                    others["topLogProbs"].append(values[:, :top_k])
        joined = {name: torch.cat(parts) for name, parts in others.items() if parts}
        return log_probs, entropy, joined

    @staticmethod
    def backward(ctx, d_log_probs, d_entropy, _others):
        hidden, weight, bias, targets = ctx.saved_tensors
        d_hidden = torch.empty_like(hidden)
        d_weight = d_bias = None
        for part in chunks(hidden.shape[0], weight):
            logits = ctx.form.apply(F.linear(hidden[part], weight, bias))
            slope = ctx.form.derivative(logits)
            scaled = at_temperature(logits, ctx.temperature)
            d_logits = d_scaled(scaled, targets, d_log_probs, d_entropy, part)
            if ctx.temperature != 1:
                d_logits /= ctx.temperature
            if slope is not None:
                d_logits *= slope
            d_logits = d_logits.to(hidden.dtype)
            d_hidden[part] = d_logits @ weight
            if ctx.needs_input_grad[1]:
                d_weight = plus(d_weight, d_logits.T @ hidden[part])
            if bias is not None and ctx.needs_input_grad[2]:
                d_bias = plus(d_bias, d_logits.sum(0))
        d_weight, d_bias = (None if one is None else one.to(weight.dtype) for one in (d_weight, d_bias))
        return d_hidden, d_weight, d_bias, None, None, None, None, None


def at_temperature(logits, temperature):
    return logits if temperature == 1 else logits / temperature


def d_scaled(scaled, targets, d_log_probs, d_entropy, part):
    """The gradient by the logits over their temperature. None is a gradient of 0: most losses have no entropy."""
    if d_entropy is None:
        a = d_log_probs[part, None]
        d = torch.softmax(scaled, dim=-1).mul_(-a)
    else:
        log_p = torch.log_softmax(scaled, dim=-1)
        d = (log_p + entropy_of(log_p)[:, None]).mul_(-d_entropy[part, None])
        a = None if d_log_probs is None else d_log_probs[part, None]
        if a is not None:
            d -= a
        d *= log_p.exp_()
    if a is not None:
        d.scatter_add_(1, targets[part, None], a)
    return d


def entropy_of(log_p):
    # A token of probability 0 adds nothing, though its log-prob may be -inf.
    return -(log_p.exp() * log_p.clamp(min=torch.finfo(log_p.dtype).min)).sum(-1)
