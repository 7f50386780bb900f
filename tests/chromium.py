"""A real Chromium for the tests of pages; they are skipped where there is none, but not in CI."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]


def chromium() -> str:
    """Where it is."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("no chromium; .ci/run installs it")
        pytest.skip("no chromium; install it with: apt-get install chromium")
    return path


@contextmanager
def opened() -> "Generator[Browser]":
    """A browser."""
    path = chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()
