"""
The calls of a sampler that decodes with vLLM: core/ports/sampler.ts. Published weights come into a file in memory,
whose digest says what was loaded to the bit; vLLM takes them from there. Of a model with an adapter only the adapter
comes: vLLM reads the base from its folder once, and gets each version of the adapter under a name of its own.
"""

import mmap
import os
import tempfile
from types import SimpleNamespace

import psutil
import torch
from petrel_torch.errors import InvalidInput
from petrel_torch.folder import CONFIG, ModelFolder
from petrel_torch.names import held
from petrel_torch.sampler_model import facts_of, seed_of, whole_model
from petrel_torch.state import parameters_of
from safetensors.torch import save_file
from vllm import EngineArgs, LLMEngine, SamplingParams
from vllm.lora.request import LoRARequest
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload
from vllm.sampling_params import RequestOutputKind

from .weights import Filed, WeightsFile, tensor_at

STOP, LENGTH = 1, 2
# Of the memory that is free, what keys and values may take.
KEYS_AND_VALUES = 0.4
# Tokens of one step, at least: prompts that come in together, and one of each sample that grows.
MOST_TOKENS = 8192
# Loads after which vLLM's log-probs are compared with transformers': the first one, and one in place of others.
PROBED = 2
# Mean difference of log-probs from which on the weights are not those that were loaded.
TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.1}


class Sampling:
    calls = ("loadFolder", "loaded", "room", "submit", "step", "abort", "reset", "close")

    def __init__(self, group, _shared, args):
        self.group = group
        self.dtype = torch.bfloat16 if args["compute"] == "bf16" else torch.float32
        self.folder = ModelFolder(args["folder"], "tokens")
        self.config = self.folder.config
        model, self.stored = self.folder.build()
        self.parameters = parameters_of(model, held(model), self.stored)
        self.file = WeightsFile(args.get("follows"))
        # Devices over which vLLM divides the model.
        self.devices = args.get("tensorParallel", 1)
        self.engine, self.longest, self.most = None, 0, 0
        self.version, self.probed = 0, 0
        # What vLLM has of the adapter now.
        self.lora = None
        # key -> whether the sample is greedy
        self.live = {}

    def facts(self):
        return {**facts_of(self.config, self.parameters), "weightsFile": self.file.path}

    def loadFolder(self, args):
        """Fills the file, which the worker has laid out in fp32."""
        tensors, parts = self.file.tensors(), {}
        for one in self.stored:
            parts.setdefault(one.source, []).append((one, tensors[one.name]))
        state = SimpleNamespace(stored=self.stored, pieces=[Filed(name, own) for name, own in parts.items()])
        self.folder.load(state, args["folder"], args["newHead"], self.group.tick)

    def loaded(self, _args):
        self.reset({})
        self.version += 1
        if self.engine is not None:
            self._give_weights()

    def room(self, args):
        """vLLM is made for the longest sample and the most samples that were ever asked for."""
        self.reset({})
        longest, most = max(self.longest, args["maxModelLen"]), max(self.most, args["maxSeqs"])
        self.asked = args["maxModelLen"]
        if self.engine is not None and (longest, most) == (self.longest, self.most):
            return
        if longest > self.config.max_position_embeddings:
            raise InvalidInput(
                f"samples of {longest} tokens; the model has {self.config.max_position_embeddings} positions"
            )
        self._end_engine()
        self.longest, self.most = longest, most
        if self.devices > 1 and self.group.device.type == "cpu":
            os.environ["VLLM_CPU_OMP_THREADS_BIND"] = divided(sorted(os.sched_getaffinity(0)), self.devices)
        try:
            self.engine = LLMEngine.from_engine_args(self._arguments())
        except ValueError as error:
            raise InvalidInput(f"vLLM cannot run {self.folder.base}: {error}") from error
        self.engine.collective_rpc(give_both)
        if self.version > 0:
            self._give_weights()

    def submit(self, request):
        whole = len(request["prompt"]) + request["maxNewTokens"]
        if whole > self.asked:
            raise InvalidInput(f"a prompt and response of {whole} tokens; there is room for {self.asked}")
        sampling = request["sampling"]
        for sample in request["samples"]:
            prefix = sample.get("prefix", [])
            params = SamplingParams(
                temperature=sampling["temperature"],
                top_k=sampling["topK"],
                top_p=min(1.0, sampling["topP"]),
                min_p=sampling["minP"],
                repetition_penalty=sampling["repetitionPenalty"],
                seed=seed_of(sample["random"]),
                max_tokens=request["maxNewTokens"] - len(prefix),
                stop_token_ids=request["stopTokens"],
                ignore_eos=True,
                logprobs=1 if is_filtered(sampling) else 0,
                detokenize=False,
                output_kind=RequestOutputKind.DELTA,
            )
            # Keys and values of other weights have another salt: they can never serve this prompt.
            prompt = {"prompt_token_ids": request["prompt"] + prefix, "cache_salt": str(self.version)}
            self.engine.add_request(str(sample["key"]), prompt, params, lora_request=self.lora)
            self.live[sample["key"]] = sampling["temperature"] == 0

    def step(self, _args):
        made = {"keys": [], "tokens": [], "logProbs": [], "samplingLogProbs": [], "finish": []}
        while self.live and not made["keys"]:
            for output in self.engine.step():
                key, (made_now,) = int(output.request_id), output.outputs
                last = len(made_now.token_ids) - 1
                for i, (token, log_probs) in enumerate(zip(made_now.token_ids, made_now.logprobs, strict=True)):
                    made["keys"].append(key)
                    made["tokens"].append(token)
                    own = (token + 1) % self.config.vocab_size
                    made["logProbs"].append(log_probs[own if own in log_probs else token].logprob)
                    made["samplingLogProbs"].append(0.0 if self.live.get(key) else log_probs[token].logprob)
                    ended = output.finished and i == last
                    made["finish"].append((STOP if made_now.finish_reason == "stop" else LENGTH) if ended else 0)
                if output.finished:
                    self.live.pop(key, None)
            self.group.tick()
        return made

    def abort(self, args):
        if self.live.pop(args["key"], None) is not None:
            self.engine.abort_request([str(args["key"])])

    def reset(self, _args):
        for key in sorted(self.live):
            self.abort({"key": key})

    def close(self, _args):
        self._end_engine()

    def _arguments(self):
        on_cpu = self.group.device.type == "cpu"
        adapter = self.folder.adapter
        loras = {}
        if adapter is not None:
            loras = {"enable_lora": True, "max_loras": 1, "max_lora_rank": lora_rank_of(adapter.largest_rank)}
        return EngineArgs(
            model=self.folder.base,
            skip_tokenizer_init=True,
            # Only what a request says counts.
            generation_config="vllm",
            dtype=self.dtype,
            load_format="dummy" if adapter is None else "auto",
            max_model_len=self.longest,
            max_num_seqs=self.most,
            kv_cache_memory_bytes=self._key_value_bytes(),
            **({} if on_cpu else {"gpu_memory_utilization": self._free_share()}),
            logprobs_mode="processed_logprobs",
            enforce_eager=on_cpu,
            tensor_parallel_size=self.devices,
            **({} if self.devices == 1 else {"distributed_executor_backend": "mp"}),
            # A prompt that was cut takes its random bits back, which torch's generator on a processor cannot.
            enable_chunked_prefill=not on_cpu,
            max_num_batched_tokens=max(MOST_TOKENS, self.longest),
            disable_log_stats=True,
            **loras,
        )

    def _key_value_bytes(self):
        """For all samples at their longest, as far as memory allows; vLLM lets others wait."""
        config = self.config
        head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        heads = -(-heads // self.devices)
        per_token = 2 * config.num_hidden_layers * heads * head * self.dtype.itemsize
        # vLLM keeps blocks of up to 128 tokens, and one block for itself.
        wanted = (self.most + 1) * (-(-self.longest // 128) * 128 + 128) * per_token
        device = self.group.device
        if device.type == "cpu":
            free = psutil.virtual_memory().available // self.devices
        else:
            free = min(torch.cuda.mem_get_info(one)[0] for one in range(self.devices))
        return min(wanted, int(KEYS_AND_VALUES * free))

    def _free_share(self):
        """
        Of each GPU's memory. vLLM does not start where less than it is told is free, and takes no more than what the
        weights, a step and the stated keys and values need; its libraries come first.
        """
        return min(free / (2 * total) for free, total in map(torch.cuda.mem_get_info, range(self.devices)))

    def _give_weights(self):
        if self.folder.adapter is None:
            self.engine.collective_rpc(load, args=(self.file.path, self.file.places(), self.dtype))
        else:
            self._give_adapter()
        self.engine.reset_prefix_cache()
        if self.probed < PROBED:
            self.probed += 1
            self._probe()

    def _give_adapter(self):
        if self.lora is not None:
            self.engine.remove_lora(self.lora.lora_int_id)
        with tempfile.TemporaryDirectory(prefix="petrel-adapter-") as folder:
            # Two loads under one name would be one to vLLM.
            self.lora = LoRARequest(f"version-{self.version}", self.version, folder)
            os.symlink(os.path.join(self.folder.folder, CONFIG), os.path.join(folder, CONFIG))
            save_file(
                {name: values.to(self.dtype) for name, values in self.file.tensors().items()},
                os.path.join(folder, self.folder.adapter.file),
            )
            if not self.engine.add_lora(self.lora):
                raise RuntimeError("vLLM has not taken the adapter")

    def _probe(self):
        """Samples a few tokens and lets transformers score them."""
        asked, self.asked = self.asked, self.longest
        prompt = [7 * i % self.config.vocab_size for i in range(1, min(8, self.longest - 1) + 1)]
        random = {"seed": [1, 1], "draw": 0, "sample": 0, "turn": 0}
        self.submit(
            {
                "prompt": prompt,
                "samples": [{"key": 1, "random": random}],
                "sampling": {"temperature": 1.0, "topK": 0, "topP": 1.0, "minP": 0.0, "repetitionPenalty": 1.0},
                "maxNewTokens": min(8, self.longest - len(prompt)),
                "stopTokens": [],
            }
        )
        tokens, given = [], []
        self.asked = asked
        while self.live:
            made = self.step({})
            tokens += made["tokens"]
            given += made["logProbs"]
        with torch.no_grad():
            logits = self._as_transformers()(input_ids=torch.tensor([prompt + tokens]), use_cache=False).logits[0]
        own = logits[len(prompt) - 1 : -1].float().log_softmax(-1).gather(1, torch.tensor(tokens).unsqueeze(1))
        apart = (own.squeeze(1) - torch.tensor(given)).abs().mean().item()
        if not apart <= TOLERANCE[self.dtype]:
            raise RuntimeError(f"vLLM's log-probs are {apart:.3g} from those of transformers with the same weights")

    def _as_transformers(self):
        """transformers' model with the same weights, in the type of vLLM's."""
        model, state = whole_model(self.folder, self.group, torch.device("cpu"))
        for parameter in model.parameters():
            parameter.data = torch.empty(parameter.shape, dtype=self.dtype)
        model.tie_weights()
        self.folder.load_base(state, self.group.tick)
        tensors, own = self.file.tensors(), held(model)
        for one in self.stored:
            own[one.source].data.view(-1)[one.first : one.first + one.elements] = tensors[one.name].view(-1)
        return model

    def _end_engine(self):
        if self.engine is not None:
            self.engine.engine_core.shutdown()
            self.engine, self.lora = None, None


def divided(processors, count):
    """Processors for each of `count` processes, as vLLM reads them; where there are too few, processes share them."""
    return "|".join(",".join(map(str, processors[i::count] or processors)) for i in range(count))


def lora_rank_of(rank):
    """The ranks for which vLLM makes room."""
    return next((one for one in (1, 8, 16, 32, 64, 128, 256, 320, 512) if one >= rank), rank)


def load(worker, path, places, dtype):
    """
    Puts the tensors of the file `path` into vLLM's own, or this process's part of them. Every one of vLLM's must come
    from them.
    """
    model = worker.model_runner.get_model()
    wanted = {name for name, _ in model.named_parameters()}
    initialize_layerwise_reload(model)
    with open(path, "r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
    found = model.load_weights((one.name, tensor_at(memory, one).to(dtype)) for one in places)
    finalize_layerwise_reload(model, worker.model_runner.model_config)
    for module in model.modules():
        # A head that is tied to the embedding keeps what a processor made of the weights before.
        if isinstance(module, VocabParallelEmbedding):
            module.quant_method.process_weights_after_loading(module)
    if wanted - found:
        raise RuntimeError(f"vLLM's {sorted(wanted - found)[0]} is in no tensor of the folder")


def give_both(worker):
    """
    vLLM gives each token's log-prob under the distribution that was sampled from. Training needs that of the model
    itself, too: it comes as the log-prob of the next token id, in the second column, which requests with filters have.
    """
    sampler = worker.model_runner.sampler
    forward = sampler.forward

    def both(logits, sampling_metadata, *args, **kwargs):
        if not sampling_metadata.max_num_logprobs:
            return forward(logits, sampling_metadata, *args, **kwargs)
        temperature = sampling_metadata.temperature
        scaled = logits.float()
        if temperature is not None:
            scaled = scaled / torch.where(temperature == 0, 1.0, temperature).unsqueeze(1)
        own = scaled.log_softmax(-1)
        made = forward(logits, sampling_metadata, *args, **kwargs)
        tokens = made.sampled_token_ids.long()
        columns = made.logprobs_tensors
        columns.logprob_token_ids[:, 1:2] = (tokens + 1) % logits.shape[1]
        columns.logprobs[:, 1:2] = own.gather(1, tokens)
        return made

    sampler.forward = both


def is_filtered(sampling):
    filters = sampling["topK"] > 0 or sampling["topP"] < 1 or sampling["minP"] > 0
    return filters or sampling["repetitionPenalty"] != 1
