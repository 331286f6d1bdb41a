"""The sweep is composed once per job: composition is what a second call of a finished sweep spends its time on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from tiny_cells import run_here

from softcontam import run as run_module


def test_each_job_is_composed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    composed: list[list[str]] = []
    original = ConfigLoaderImpl.load_sweep_config

    def counted(self: ConfigLoaderImpl, master_config: Any, sweep_overrides: list[str]) -> Any:
        composed.append(sweep_overrides)
        return original(self, master_config, sweep_overrides)

    monkeypatch.setattr(ConfigLoaderImpl, "load_sweep_config", counted)
    monkeypatch.setattr(run_module, "launch", lambda *_: [])
    ended = run_here(["-m", "condition=clean,exact", "seed=0,1,2"], tmp_path, monkeypatch, capsys)
    assert ended.code == 0, ended.text
    assert len(composed) == 6


def test_a_job_that_cannot_be_composed_stops_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_module, "launch", lambda *_: pytest.fail("launched"))
    ended = run_here(["-m", "condition=clean,no_such_condition"], tmp_path, monkeypatch, capsys)
    assert ended.code != 0
    assert "no_such_condition" in ended.text
    assert "semd_synthetic" in ended.text, "the choices are listed"
