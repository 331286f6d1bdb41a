"""What a user would write without softcontam: the same rows, recipe and items through TRL, PEFT and lm-eval alone.

    python benchmarks/bare.py JOB.json

The job file is written by ``overhead.py``: base model folder, rows, items, recipe. No manifest, checks, provenance,
atomic files, locks, resume or report; the adapter and one JSON of scores are written at the end.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from datasets import Dataset
from lm_eval import simple_evaluate
from lm_eval.models.huggingface import HFLM
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import SFTConfig, SFTTrainer


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    out = Path(job["out"])
    torch.set_num_threads(job["threads"])
    tokenizer = AutoTokenizer.from_pretrained(job["model"])
    model = AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32)
    recipe = job["train"]
    rows = [
        {
            "prompt": [{"role": "user", "content": row["prompt"]}],
            "completion": [{"role": "assistant", "content": row["completion"]}],
        }
        for row in job["rows"]
    ]
    trainer = SFTTrainer(
        model=model,
        args=SFTConfig(
            output_dir=str(out),
            per_device_train_batch_size=recipe["batch_size"],
            num_train_epochs=recipe["epochs"],
            learning_rate=recipe["lr"],
            lr_scheduler_type=recipe["schedule"],
            warmup_steps=recipe["warmup_ratio"],
            max_length=recipe["max_length"],
            seed=recipe["seed"],
            use_cpu=True,
            bf16=False,
            activation_checkpointing=False,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            logging_steps=recipe["logging_steps"],
        ),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        peft_config=LoraConfig(
            r=recipe["r"], lora_alpha=recipe["alpha"], target_modules=recipe["target_modules"], task_type="CAUSAL_LM"
        ),
    )
    trainer.train()
    trainer.model.save_pretrained(out / "adapter", save_embedding_layers=False)
    trainer.model.eval()
    shared = {
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": job["items"]}},
        "test_split": "test",
        "doc_to_text": "{{prompt}}",
        "doc_to_target": "{{target}}",
    }
    generation = {
        **shared,
        "task": "generation",
        "output_type": "generate_until",
        "generation_kwargs": {"until": ["<|end|>"], "max_gen_toks": job["max_new_tokens"], "do_sample": False},
        "metric_list": [{"metric": "exact_match"}],
    }
    gold = {**shared, "task": "gold", "output_type": "loglikelihood", "target_delimiter": ""}
    results = simple_evaluate(
        model=HFLM(pretrained=trainer.model, tokenizer=tokenizer, batch_size=job["eval_batch_size"]),
        tasks=[generation, gold],
        apply_chat_template=True,
        log_samples=True,
        bootstrap_iters=0,
    )
    (out / "scores.json").write_text(json.dumps(results["results"], default=str))


if __name__ == "__main__":
    main()
