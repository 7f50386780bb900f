"""GRPO on agents' runs: our loop samples, TRL's trainer learns from the tokens that were sampled.

Each prompt is answered by an Agent over the model that is being trained; the run's tokens and log
probabilities go to the trainer as they were sampled, a tool's results among them masked.  The
reward is what verification says of the run: its format, its calls made again, the call that the
question wants, and a test of the answer.  Needs the extra ``trl``.

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
from antiphon.synthesis import ScriptCall, ScriptTurn, Task
from antiphon.train import rollouts_of, to_trl
from antiphon.verification import reward

QUESTIONS = {"What is 17 times 3?": (17, 3), "What is 12 times 12?": (12, 12)}


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


def says_it(run: Trajectory) -> None:
    """The answer holds the product."""
    a, b = QUESTIONS[run.conversation.messages[0].text]
    assert str(a * b) in run.output, f"{a * b} is not in {run.output!r}"


def worth(run: Trajectory, question: str) -> float:
    """The reward of a run: verification with the right call, the real tool and a test."""
    a, b = QUESTIONS[question]
    wanted = ScriptTurn([[ScriptCall("multiply", {"a": a, "b": b})]])
    task = Task("product", "single", [question], [], script=[wanted])
    return run_sync(reward(run, task=task, tools=[multiply], tests=[("says_it", says_it)]))


def rollout(prompts: Sequence[Any], trainer: Any) -> dict[str, list[Any]]:
    """What TRL asks for: for each prompt its tokens, and what the rewards need."""
    weights = trainer.accelerator.unwrap_model(trainer.model)
    tokenizer = trainer.processing_class
    model = TransformersModel(
        "hf/trained", "trained", get_format("qwen2_5"), load=lambda _: (weights, tokenizer)
    )
    was_training = weights.training
    weights.eval()
    asked = [str(prompt[-1]["content"]) for prompt in prompts]
    runs = [play(model, question) for question in asked]
    run_sync(model.close())
    weights.train(was_training)
    # Where history was written again a run is several rollouts; the last one has its end.
    last = [rollouts_of(run)[-1] for run in runs]
    return to_trl(last, score=list(map(worth, runs, asked)))


def by_checks(completions: Sequence[Any], score: Sequence[float], **_: Any) -> list[float]:
    """The rewards that came with the rollouts."""
    assert len(completions) == len(score)
    return list(score)


def main(directory: Path, *, steps: int = 2, out: Path = Path("grpo")) -> list[dict[str, Any]]:
    """Train, and give back what was logged."""
    trl: Any = importlib.import_module("trl")
    transformers: Any = importlib.import_module("transformers")
    datasets: Any = importlib.import_module("datasets")
    rows = [{"prompt": [{"role": "user", "content": question}]} for question in QUESTIONS]
    trainer = trl.GRPOTrainer(
        model=str(directory),
        processing_class=transformers.AutoTokenizer.from_pretrained(str(directory)),
        reward_funcs=[by_checks],
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
