"""Memory and cores are found out on every system, or are unknown."""

import os
import sys
from types import SimpleNamespace

import pytest

from priory.core import sharding
from priory.core.sharding import (
    check_memory,
    choose_threads,
    find_memory_limit,
    map_threads,
    n_usable_cores,
    total_memory_bytes,
    use_one_thread,
)


def test_memory_is_asked_of_the_system_then_of_psutil_then_unknown(monkeypatch):
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}.__getitem__, raising=False)
    assert total_memory_bytes() == 4_096_000
    monkeypatch.delattr(os, "sysconf")  # as on Windows
    fake = SimpleNamespace(virtual_memory=lambda: SimpleNamespace(total=12345))
    monkeypatch.setitem(sys.modules, "psutil", fake)
    assert total_memory_bytes() == 12345
    monkeypatch.setitem(sys.modules, "psutil", None)  # not installed
    assert total_memory_bytes() is None
    check_memory(10**18, "the counts", "use fewer classes")  # unknown memory is not checked


def test_a_system_that_lacks_a_name_of_sysconf(monkeypatch):
    def refuse(name):
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "sysconf", refuse, raising=False)
    monkeypatch.setitem(sys.modules, "psutil", None)
    assert total_memory_bytes() is None


def test_the_limit_of_a_container_is_the_memory_there_is(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}.__getitem__, raising=False)
    for written, expected in [("1234567\n", 1234567), ("max\n", 4_096_000)]:
        (tmp_path / "memory.max").write_text(written, encoding="ascii")
        monkeypatch.setattr(sharding, "CONTAINER_LIMIT", tmp_path / "memory.max")
        assert find_memory_limit() == expected


def test_the_limit_of_the_process_is_the_memory_there_is(monkeypatch, tmp_path):
    monkeypatch.setattr(os, "sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}.__getitem__, raising=False)
    monkeypatch.setattr(sharding, "PROCESS_LIMITS", tmp_path / "limits")
    for soft, expected in [("54321", 54321), ("unlimited", 4_096_000)]:
        line = f"Limit  Soft Limit  Hard Limit  Units\nMax address space  {soft}  unlimited  bytes\n"
        (tmp_path / "limits").write_text(line, encoding="ascii")
        assert find_memory_limit() == expected


def test_results_wait_for_as_many_tasks_as_there_are_cores(monkeypatch):
    monkeypatch.setattr(sharding, "N_THREADS", 2)
    started = []
    results = map_threads(lambda item: started.append(item) or item, range(10))
    assert next(results) == 0
    assert set(started) <= {0, 1}
    assert list(results) == list(range(1, 10))


@pytest.mark.parametrize("has_affinity", [True, False])
def test_there_is_at_least_one_core(monkeypatch, has_affinity):
    if not has_affinity:
        monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert n_usable_cores() >= 1


def test_a_task_may_have_one_core_only():
    with use_one_thread():
        assert choose_threads() == 1
    assert choose_threads() == sharding.N_THREADS
