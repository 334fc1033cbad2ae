"""A training step of PyTorch's FSDP2 and transformers alone, on ranks over gloo: what bench/measurements/fsdp.ts gives
petrel's torch engine.

usage: fsdp_peer.py '<work as JSON>'

Says {"ready", "about"} when the model is warm, then answers every line on stdin with {"value": tokens per second} of
one turn. Each rank passes `sequences_per_pass` sequences at a time forward and backward: log-prob of every next token,
whose gradient is 1 / tokens; then gradient clipping and fused AdamW on fp32 weights. Products are in bf16 where the
work says so, sums of gradients in fp32.
"""
import json
import os
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
import transformers
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.utils import clip_grad_norm_

WORK = json.loads(sys.argv[1])


class TrainingStep:
    def __init__(self, rank):
        torch.manual_seed(1)
        config = transformers.LlamaConfig(max_position_embeddings=2048, attn_implementation="sdpa", **WORK["shape"])
        self.model = transformers.LlamaForCausalLM(config).train()
        compute = torch.bfloat16 if WORK["precision"] == "bf16" else torch.float32
        policy = MixedPrecisionPolicy(param_dtype=compute, reduce_dtype=torch.float32, cast_forward_inputs=False)
        for unit in [*self.model.model.layers, self.model]:
            fully_shard(unit, mp_policy=policy)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5, weight_decay=0.01, fused=True)
        ids = torch.randint(3, WORK["shape"]["vocab_size"], (WORK["batch"], WORK["length"]))
        self.passes = ids.chunk(WORK["ranks"])[rank].split(WORK["sequences_per_pass"])
        self.take()

    def take(self):
        for ids in self.passes:
            logits = self.model(ids, use_cache=False).logits[:, :-1].float()
            log_probs = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])
            (log_probs.sum() / (WORK["batch"] * WORK["length"])).backward()
        clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def rank_of(rank, rendezvous):
    torch.set_num_threads(WORK["threads_per_rank"])
    store = dist.FileStore(rendezvous, WORK["ranks"])
    dist.init_process_group("gloo", store=store, rank=rank, world_size=WORK["ranks"])
    step = TrainingStep(rank)
    goes_on = torch.ones(1)
    if rank == 0:
        print(json.dumps({"ready": True, "about": f"torch {torch.__version__}"}), flush=True)
    # Rank 0 reads the turns, the others follow.
    while True:
        if rank == 0:
            goes_on.fill_(float(sys.stdin.readline() != ""))
        dist.broadcast(goes_on, 0)
        if not goes_on:
            break
        start = time.perf_counter()
        step.take()
        dist.barrier()
        if rank == 0:
            rate = WORK["batch"] * WORK["length"] / (time.perf_counter() - start)
            print(json.dumps({"value": rate}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.update(GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS=str(WORK["threads_per_rank"]))
    with tempfile.TemporaryDirectory() as folder:
        rendezvous = os.path.join(folder, "rendezvous")
        others = [
            multiprocessing.get_context("spawn").Process(target=rank_of, args=(rank, rendezvous))
            for rank in range(1, WORK["ranks"])
        ]
        for one in others:
            one.start()
        rank_of(0, rendezvous)
        for one in others:
            one.join()
