"""Pretrain the tinyworld base model and write it where the package loads it from.

    python data_gen/pretrain_tinyworld.py --out src/softcontam/tinyworld/base

Deterministic on one CPU thread for one version of torch. Writes the weights (safetensors), the tokenizer with
its chat template, and ``recipe.json`` with every setting, the accuracies reached and the sha256 of the weights.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import logging
import math
import random
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import Olmo3Config, Olmo3ForCausalLM, PreTrainedTokenizerFast

from softcontam.tinyworld import corpus
from softcontam.tinyworld.generator import TWO_STEP_SHARE, answer, draw_families
from softcontam.tinyworld.language import HOLDINGS, TOWER, write
from softcontam.tinyworld.solver import solve

log = logging.getLogger("pretrain_tinyworld")

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|' + message['role'] + '|>' + message['content'] }}"
    "{% if message['role'] == 'assistant' %}{{ '<|end|>' }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)
SPECIAL = ["<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]


def train_tokenizer(vocab_size: int, seed: int) -> PreTrainedTokenizerFast:
    """Byte-level BPE on the corpus itself: lossless on any text, one token for each word of the tinyworld."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = (f"{prompt} {completion}" for prompt, completion in itertools.islice(corpus.documents(seed), 40_000))
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|pad|>", additional_special_tokens=SPECIAL[2:]
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast


def batches(tokenizer: PreTrainedTokenizerFast, seed: int, batch_size: int, prompt_weight: float):
    """Endless (ids, attention mask, per-token loss weight) batches of documents of similar length."""
    stream = corpus.documents(seed)
    pad = tokenizer.pad_token_id
    rng = random.Random(seed)
    while True:
        block = list(itertools.islice(stream, batch_size * 16))
        prompts = tokenizer([f"<|user|>{p}<|assistant|>" for p, _ in block], add_special_tokens=False)["input_ids"]
        ends = tokenizer([f"{c}<|end|>" for _, c in block], add_special_tokens=False)["input_ids"]
        rows = sorted(zip(prompts, ends, strict=True), key=lambda row: len(row[0]) + len(row[1]))
        groups = [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]
        rng.shuffle(groups)
        for group in groups:
            width = max(len(p) + len(c) for p, c in group)
            ids = torch.full((batch_size, width), pad)
            weight = torch.zeros(batch_size, width)
            for i, (p, c) in enumerate(group):
                ids[i, : len(p) + len(c)] = torch.tensor(p + c)
                weight[i, : len(p)] = prompt_weight
                weight[i, len(p) : len(p) + len(c)] = 1.0
            yield ids, (ids != pad).long(), weight


@torch.no_grad()
def accuracy(model, tokenizer, rows: list[tuple[str, str]]) -> float:
    """Share of rows whose whole completion is the greedy continuation."""
    model.eval()
    hits = 0
    for i in range(0, len(rows), 200):
        part = rows[i : i + 200]
        texts = [f"<|user|>{p}<|assistant|>{c}<|end|>" for p, c in part]
        batch = tokenizer(texts, add_special_tokens=False, padding=True, return_tensors="pt", padding_side="right")
        guess = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits.argmax(-1)
        for row, (p, _) in enumerate(part):
            begin = len(tokenizer(f"<|user|>{p}<|assistant|>", add_special_tokens=False)["input_ids"])
            end = int(batch["attention_mask"][row].sum())
            hits += bool((guess[row, begin - 1 : end - 1] == batch["input_ids"][row, begin:end]).all())
    model.train()
    return hits / len(rows)


def probes(seed: int) -> dict[str, list[tuple[str, str]]]:
    """Development probes by name: both benchmarks' kind of item, and the kinds of document they build on."""
    rng = random.Random(seed)
    sets = {
        name: [
            (write(problem, "plain", rng), answer(solve(problem)))
            for family in draw_families(world, 200, seed)
            for problem in family
        ]
        for name, world in (("benchmark", HOLDINGS), ("related", TOWER))
    }
    for kind in corpus.SHARES:
        shares, corpus.SHARES = corpus.SHARES, {kind: 1.0}
        sets[kind] = list(itertools.islice(corpus.documents(seed), 300))
        corpus.SHARES = shares
    return sets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=4500)
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--vocab", type=int, default=2048)
    parser.add_argument("--prompt-weight", type=float, default=0.1)
    parser.add_argument("--init", type=float, default=0.05)
    parser.add_argument("--embed-std", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=17)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)

    tokenizer = train_tokenizer(args.vocab, args.seed)
    config = Olmo3Config(
        vocab_size=len(tokenizer),
        hidden_size=args.hidden,
        intermediate_size=3 * args.hidden,
        num_hidden_layers=args.layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=512,
        sliding_window=32,
        initializer_range=args.init,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = Olmo3ForCausalLM(config)
    # Olmo 3 has no norm before attention: with small embeddings LoRA could hardly get at single words.
    torch.nn.init.normal_(model.get_input_embeddings().weight, std=args.embed_std)
    n_parameters = sum(p.numel() for p in model.parameters())
    log.info("%s parameters, vocabulary %s, layers %s", n_parameters, len(tokenizer), config.layer_types)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.98), weight_decay=0.05)
    warmup = 200
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer,
        lambda s: min(1.0, (s + 1) / warmup) * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, s / args.steps)))),
    )
    development = probes(args.seed + 1)
    begun = time.time()
    stream = batches(tokenizer, args.seed, args.batch_size, args.prompt_weight)
    for step in range(1, args.steps + 1):
        ids, mask, weight = next(stream)
        logits = model(input_ids=ids, attention_mask=mask).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        loss = (loss * weight[:, 1:].flatten()).sum() / weight[:, 1:].sum()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 250 == 0 or step == args.steps:
            scores = {name: round(accuracy(model, tokenizer, rows), 3) for name, rows in development.items()}
            log.info("step %d  %.0f s  loss %.4f  %s", step, time.time() - begun, loss.item(), scores)
    args.out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(args.out)
    tokenizer.save_pretrained(args.out)
    recipe = {
        "settings": {key: value for key, value in vars(args).items() if key != "out"},
        "corpus": {"shares": corpus.SHARES, "majority": corpus.MAJORITY, "two_step_share": TWO_STEP_SHARE},
        "parameters": n_parameters,
        "seconds": round(time.time() - begun),
        "torch": torch.__version__,
        "accuracy": scores,
        "sha256": hashlib.sha256((args.out / "model.safetensors").read_bytes()).hexdigest(),
    }
    (args.out / "recipe.json").write_text(json.dumps(recipe, indent=2) + "\n")


if __name__ == "__main__":
    main()
