"""A run as the rollouts of others: exact tokens, each sampled one once, in the shapes they take."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from antiphon.encode import Encoder, load_tokenizer
from antiphon.errors import DataError
from antiphon.events import Trajectory
from antiphon.formats import get_format
from antiphon.messages import Conversation, Message, ToolCall
from antiphon.train import Rollout, rollouts_of, to_trl, to_verifiers, to_verl
from recorded_runs import record, rendered, token_in
from tiny_training import FERRY

ASKED = Conversation(
    (
        Message.user("Ferry?"),
        Message.assistant(tool_calls=[ToolCall("ferry", {"to": "Holm"}, "c0")]),
        Message.tool("9", call_id="c0", name="ferry"),
        Message.assistant("At 9.", reasoning=""),
        Message.user("Sure?"),
        Message.assistant("Yes."),
    ),
    (FERRY,),
)
WROTE = [
    '<tool_call>\n{"name":"ferry", "arguments": {"to": "Holm"}}\n</tool_call>',
    "At 9.",
    "Yes.",
]


@pytest.fixture(scope="module")
def encoder(vocabulary: Path) -> Encoder:
    return Encoder(load_tokenizer(vocabulary), get_format("qwen2_5"))


def sampled_of(run: Trajectory) -> list[list[int]]:
    return [[t.token_id for t in step.completion.tokens or ()] for step in run.steps]


def turns_of(rollouts: list[Rollout]) -> list[list[int]]:
    return [list(r.completion_ids[turn.start : turn.end]) for r in rollouts for turn in r.turns]


def test_a_run_whose_tokens_extend_each_other_is_one_rollout(encoder: Encoder) -> None:
    run = record(encoder, ASKED, WROTE, serve=token_in)

    (rollout,) = rollouts_of(run)

    last = run.steps[-1].completion
    assert last.prompt_ids is not None
    assert rollout.prompt_ids + rollout.completion_ids == (*last.prompt_ids, *sampled_of(run)[-1])
    assert turns_of([rollout]) == sampled_of(run)
    of_turns = {i for turn in rollout.turns for i in range(turn.start, turn.end)}
    assert [i for i, m in enumerate(rollout.mask) if m] == sorted(of_turns)
    assert rollout.logprobs == tuple(-0.5 if m else 0.0 for m in rollout.mask)


def test_a_prompt_that_extends_nothing_begins_a_rollout_and_no_token_counts_twice(
    encoder: Encoder,
) -> None:
    run = record(encoder, ASKED, WROTE, serve=rendered)  # the call is printed otherwise

    rollouts = rollouts_of(run)

    assert [len(r.turns) for r in rollouts] == [1, 2]
    assert turns_of(rollouts) == sampled_of(run)
    assert len({r.group for r in rollouts}) == 1
    assert rollouts[0].metadata["run"] == {"score": 1.0}


def test_a_cut_answer_says_so(encoder: Encoder) -> None:
    run = record(encoder, ASKED, WROTE, serve=token_in)
    cut = replace(run.steps[-1], completion=replace(run.steps[-1].completion, stop_reason="length"))

    assert not rollouts_of(run)[0].is_truncated
    assert rollouts_of(replace(run, steps=(*run.steps[:-1], cut)))[0].is_truncated


def test_trl_is_given_its_columns_and_ours(encoder: Encoder) -> None:
    rollouts = rollouts_of(record(encoder, ASKED, WROTE, serve=token_in))

    columns = to_trl(rollouts, score=[1.0])

    assert columns.keys() == {"prompt_ids", "completion_ids", "logprobs", "env_mask", "score"}
    lengths = {len(columns[key][0]) for key in ("completion_ids", "logprobs", "env_mask")}
    assert lengths == {len(rollouts[0].completion_ids)}
    with pytest.raises(DataError, match="'score' has 2 values for 1 rollouts"):
        to_trl(rollouts, score=[1.0, 2.0])
    without = rollouts_of(record(encoder, ASKED, WROTE, logprob=None))
    with pytest.raises(DataError, match="no log probabilities, which TRL needs"):
        to_trl(without)


def test_verl_reads_our_rollout(encoder: Encoder) -> None:
    (rollout,) = rollouts_of(record(encoder, ASKED, WROTE, serve=token_in))

    output = to_verl(rollout, reward=0.5)

    assert output["response_mask"] == list(rollout.mask)
    assert output["num_turns"] == 3
    if find_spec("verl") is None or find_spec("ray") is None:
        return
    module: Any = pytest.importorskip("verl.experimental.agent_loop.agent_loop")
    made = module.AgentLoopOutput(**output).as_dict()
    assert made["responses"].tolist() == list(rollout.completion_ids)
    assert made["rollout_log_probs"].tolist() == list(rollout.logprobs or ())


@pytest.mark.parametrize(("serve", "n_branches"), [(token_in, 1), (rendered, 2)])
def test_the_graph_of_verifiers_holds_each_branch_as_it_was_seen(
    encoder: Encoder, serve: Any, n_branches: int
) -> None:
    run = record(encoder, ASKED, WROTE, serve=serve)

    graph = to_verifiers(run, rewards={"right": 1.0})

    nodes = graph["nodes"]
    leaves = set(range(len(nodes))) - {node["parent"] for node in nodes}
    assert len(leaves) == n_branches
    assert path_ids(nodes, max(leaves)) == [
        *(run.steps[-1].completion.prompt_ids or ()),
        *sampled_of(run)[-1],
    ]
    assert sum(sum(node.get("mask", ())) for node in nodes) == sum(map(len, sampled_of(run)))


def path_ids(nodes: list[dict[str, Any]], leaf: int) -> list[int]:
    ids: list[int] = []
    place: int | None = leaf
    while place is not None:
        ids = nodes[place].get("token_ids", []) + ids
        place = nodes[place]["parent"]
    return ids


@pytest.mark.slow  # the package takes its time to import
def test_verifiers_reads_our_trace(encoder: Encoder) -> None:
    run = record(encoder, ASKED, WROTE, serve=rendered)
    trace: Any = pytest.importorskip("verifiers.v1.trace", exc_type=ImportError)
    task: Any = pytest.importorskip("verifiers.v1.task")
    agent: Any = pytest.importorskip("verifiers.v1.configs.agent")
    state: Any = pytest.importorskip("verifiers.v1.state")
    kind = trace.Trace[task.WireTaskData, state.State, agent.WireAgentConfig]

    read = kind.model_validate(to_verifiers(run, rewards={"right": 1.0}))

    assert read.reward == 1.0
    assert len(read.branches) == 2
    assert [list(branch.token_ids) for branch in read.branches][-1] == [
        *(run.steps[-1].completion.prompt_ids or ()),
        *sampled_of(run)[-1],
    ]
