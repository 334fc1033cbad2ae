"""vLLM alone, with the requests that bench/measurements/vllm.ts sends it through petrel.

usage: vllm_peer.py '<work as JSON>'

Says {"ready", "about"} when the model is warm, then answers every line on stdin with {"values": {"throughput",
"new_weights"}} of one turn: tokens per second, and milliseconds from weights in memory to the first token sampled with
them: a copy of the tensors, the load by vLLM's own loader, and one step.
"""
import json
import os
import sys
import tempfile
import time

WORK = json.loads(sys.argv[1])
os.environ.update(
    OMP_NUM_THREADS=str(WORK["threads"]),
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_USE_V2_MODEL_RUNNER="0",
    VLLM_HOST_IP="127.0.0.1",
    VLLM_NO_USAGE_STATS="1",
    VLLM_PLUGINS="",
    VLLM_LOGGING_LEVEL="ERROR",
)

import torch  # noqa: E402
import transformers  # noqa: E402
import vllm  # noqa: E402
from vllm import EngineArgs, LLMEngine, SamplingParams  # noqa: E402
from vllm.model_executor.model_loader.reload import (  # noqa: E402
    finalize_layerwise_reload,
    initialize_layerwise_reload,
)
from vllm.sampling_params import RequestOutputKind  # noqa: E402

DTYPE = torch.bfloat16 if WORK["precision"] == "bf16" else torch.float32
LONGEST = WORK["prompt"] + WORK["new_tokens"]


def new_engine(folder):
    return LLMEngine.from_engine_args(
        EngineArgs(
            model=folder,
            skip_tokenizer_init=True,
            generation_config="vllm",
            dtype=DTYPE,
            max_model_len=LONGEST,
            max_num_seqs=WORK["batch"],
            kv_cache_memory_bytes=2 << 30,
            enforce_eager=True,
            enable_chunked_prefill=False,
            max_num_batched_tokens=8192,
            logprobs_mode="processed_logprobs",
            disable_log_stats=True,
        )
    )


def load(worker, weights):
    model = worker.model_runner.get_model()
    initialize_layerwise_reload(model)
    model.load_weights(iter(weights))
    finalize_layerwise_reload(model, worker.model_runner.model_config)


class Sampling:
    def __init__(self, folder):
        self.made = 0
        config = transformers.LlamaConfig(max_position_embeddings=2048, **WORK["shape"])
        model = transformers.LlamaForCausalLM(config)
        model.save_pretrained(folder)
        self.weights = [(name, one.detach().to(DTYPE)) for name, one in model.named_parameters()]
        self.engine = new_engine(folder)
        self.take(1, 1)
        self.take(WORK["batch"], WORK["new_tokens"])

    def take(self, count, tokens):
        for i in range(count):
            self.made += 1
            prompt = torch.randint(3, WORK["shape"]["vocab_size"], (WORK["prompt"],)).tolist()
            params = SamplingParams(
                temperature=1.0, seed=self.made, max_tokens=tokens, ignore_eos=True, logprobs=0, detokenize=False,
                output_kind=RequestOutputKind.DELTA,
            )
            self.engine.add_request(str(self.made), {"prompt_token_ids": prompt}, params)
        while self.engine.has_unfinished_requests():
            self.engine.step()

    def turn(self):
        start = time.perf_counter()
        self.engine.collective_rpc(load, args=([(name, one.clone()) for name, one in self.weights],))
        self.engine.reset_prefix_cache()
        self.take(1, 1)
        loaded = time.perf_counter()
        self.take(WORK["batch"], WORK["new_tokens"])
        seconds = time.perf_counter() - loaded
        return {
            "throughput": WORK["batch"] * WORK["new_tokens"] / seconds,
            "new_weights": 1000 * (loaded - start),
        }


with tempfile.TemporaryDirectory() as folder:
    sampling = Sampling(folder)
    print(json.dumps({"ready": True, "about": f"vllm {vllm.__version__}"}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"values": sampling.turn()}), flush=True)
