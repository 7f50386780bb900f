"""A config that means nothing says where and what."""

from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import DataError, UsageError
from antiphon.synthesis import config_from, read_config

WHOLE: dict[str, Any] = {"toolset": [{"catalogs": ["demo"]}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sed": 1}, r"no key 'sed'; known here: .*; did you mean 'seed'\?"),
        ({"tasks": {"cuont": 1}}, r"no key 'tasks.cuont'.*'count'"),
        ({"toolset": [{"catalog": ["demo"]}]}, r"no key 'toolset\[0\].catalog'.*'catalogs'"),
        ({"folder": "x"}, "no key 'folder'"),
        ({"tasks": {"count": "many"}}, r"key 'tasks.count': .* got 'many'"),
        ({"tasks": {"count": 0}}, "tasks.count must be at least 1"),
        ({"tasks": {"kinds": {"sinlge": 1}}}, "no kind of task 'sinlge'; known: single"),
        ({"tasks": {"kinds": {"single": 0}}}, "one must be more"),
        ({"toolset": []}, r"there is no \[\[toolset\]\]"),
        ({"toolset": [{"weight": 2}]}, r"toolset\[0\] has no tools"),
        ({"toolset": [{"catalogs": ["demo"], "offered": [5, 2]}]}, "fewest, most"),
        ({"toolset": [{"catalogs": ["demo"], "odd_values": 2}]}, "must be a share, got 2"),
        ({"toolset": [{"catalogs": ["demo"], "variants": -1}]}, "variants must be at least 0"),
        ({"toolset": [{"python": ["a:b"]}]}, "written by rule from catalogs"),
        ({"models": {"writer": "local"}}, "'rules' can only do tasks that are written by rule"),
        ({"toolset": [{"catalogs": ["demo"], "specs": ["s"]}]}, "models.simulator"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        config_from(WHOLE | change)


def test_toml_and_yaml_say_the_same(tmp_path: Path):
    pytest.importorskip("yaml")
    (tmp_path / "a.toml").write_text('seed = 3\n[[toolset]]\ncatalogs = ["demo"]\n')
    (tmp_path / "a.yaml").write_text("seed: 3\ntoolset:\n  - catalogs: [demo]\n")

    assert read_config(tmp_path / "a.toml") == read_config(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "seed = ", "is not TOML: invalid value"),
        ("a.toml", "[tasks]\ncuont = 1", "a.toml: no key 'tasks.cuont'"),
        ("a.yaml", "a: [", "is not YAML"),
        ("a.json", "{}", "must be TOML or YAML"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, text: str, message: str):
    if name.endswith("yaml"):
        pytest.importorskip("yaml")
    (tmp_path / name).write_text(text)

    with pytest.raises(DataError, match=message):
        read_config(tmp_path / name)


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(DataError, match="cannot be read: no such file"):
        read_config("nowhere.toml")
