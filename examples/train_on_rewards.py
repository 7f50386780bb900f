"""GRPO on agents' runs: our loop samples, TRL's trainer learns from the tokens that were sampled.

Each prompt is answered by an Agent over the model that is being trained; the run's tokens and log
probabilities go to the trainer as they were sampled, a tool's results among them masked, and what
the run came to is the reward.  Needs the extra ``trl``.

    python examples/train_on_rewards.py MODEL_DIRECTORY
"""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from antiphon import Agent, Trajectory, get_format, run_sync, tool
from antiphon.models import Model, ModelSettings
from antiphon.models._transformers import TransformersModel
from antiphon.train import rollouts_of, to_trl

QUESTIONS = [("What is 17 times 3?", "51"), ("What is 12 times 12?", "144")]


@tool
def multiply(a: float, b: float) -> float:
    """Multiply two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a * b


def play(model: Model, question: str, *, max_tokens: int = 64) -> Trajectory:
    """One run of the agent that is trained."""
    agent = Agent(
        name="clerk",
        model=model,
        tools=[multiply],
        max_steps=4,
        settings=ModelSettings(temperature=1.0, max_tokens=max_tokens),
    )
    return agent.run_sync(question).trajectory


def rollout(prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
    """What TRL asks for: for each prompt its tokens, and what the rewards need."""
    weights = trainer.accelerator.unwrap_model(trainer.model)
    tokenizer = trainer.processing_class
    model = TransformersModel(
        "hf/trained", "trained", get_format("qwen2_5"), load=lambda _: (weights, tokenizer)
    )
    was_training = weights.training
    weights.eval()
    runs = [play(model, prompt[-1]["content"]) for prompt in prompts]
    run_sync(model.close())
    weights.train(was_training)
    # Where history was written again a run is several rollouts; the last one has its end.
    last = [rollouts_of(run)[-1] for run in runs]
    return to_trl(last, output=[run.output for run in runs])


def is_right(completions: Sequence[Any], answer: Sequence[str], output: Sequence[str], **_: Any):
    """1 where the run's answer holds the right number; a tenth for ending well at all."""
    assert len(completions) == len(output)
    pairs = zip(output, answer, strict=True)
    return [1.0 if right in said else 0.1 * bool(said) for said, right in pairs]


def main(directory: Path, *, steps: int = 2, out: Path = Path("grpo")) -> list[dict[str, Any]]:
    """Train, and give back what was logged."""
    trl: Any = importlib.import_module("trl")
    transformers: Any = importlib.import_module("transformers")
    datasets: Any = importlib.import_module("datasets")
    rows = [
        {"prompt": [{"role": "user", "content": question}], "answer": answer}
        for question, answer in QUESTIONS
    ]
    trainer = trl.GRPOTrainer(
        model=str(directory),
        processing_class=transformers.AutoTokenizer.from_pretrained(str(directory)),
        reward_funcs=[is_right],
        rollout_func=rollout,
        train_dataset=datasets.Dataset.from_list(rows),
        args=trl.GRPOConfig(
            output_dir=str(out),
            per_device_train_batch_size=4,
            num_generations=2,
            max_steps=steps,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            bf16=False,
            use_cpu=True,
        ),
    )
    trainer.train()
    return list(trainer.state.log_history)


if __name__ == "__main__":
    for line in main(Path(sys.argv[1])):
        print({key: line[key] for key in ("loss", "reward", "grad_norm") if key in line})
