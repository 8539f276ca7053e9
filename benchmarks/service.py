"""The service under load, beside a bare Starlette route that does nothing and MLflow's scoring server.

    python benchmarks/service.py [--write] [--mlflow PYTHON]    # PYTHON of an environment with mlflow and scikit-learn
    python benchmarks/service.py --soak [requests] [--write]    # resident memory over 1,000,000 requests

Every server is a process of its own on 127.0.0.1; all are asked by the same clients, in turns, in one run. Writes
benchmarks/results/service.md and benchmarks/results/service_memory.md.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from service_load import LoadResult, make_post, run_load

RESULT = Path(__file__).parent / "results" / "service.md"
MEMORY_RESULT = RESULT.with_name("service_memory.md")
N_ROUNDS, N_REQUESTS, N_CLIENTS = 4, 3000, 64
PREDICT = "Priory, predict one text"
N_SOAK_PARTS = 20
WORDS = [f"word{i}" for i in range(3000)]
BARE = """
import sys, uvicorn, msgspec
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
async def answer(request):
    body = msgspec.json.decode(await request.body())
    return Response(msgspec.json.encode({"n": len(body["texts"])}), media_type="application/json")
app = Starlette(routes=[Route("/predict", answer, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[1]), http="h11", loop="asyncio", log_level="warning", access_log=False)
"""
MLFLOW_MODEL = """
import sys, json, mlflow, mlflow.sklearn
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
rows = json.load(open(sys.argv[2]))
model = make_pipeline(CountVectorizer(), MultinomialNB()).fit([r[0] for r in rows], [r[1] for r in rows])
mlflow.sklearn.save_model(model, sys.argv[1], pyfunc_predict_fn="predict_proba")
"""


def make_rows(n: int, seed: int = 0) -> list[tuple[str, str]]:
    """Texts of about 1 kB, of two classes."""
    chance = random.Random(seed)
    weights = [1 / (rank + 1) for rank in range(len(WORDS))]
    rows = []
    for _ in range(n):
        label = chance.choice(["spam", "ham"])
        shift = 40 if label == "spam" else 0
        picked = chance.choices(range(len(WORDS)), weights, k=140)
        rows.append((" ".join(WORDS[(rank + shift) % len(WORDS)] for rank in picked), label))
    return rows


def find_free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@contextmanager
def run_process(*command: str, port: int, seconds: float = 90) -> Iterator[int]:
    """A server process, once it accepts connections; yields its process number."""
    path = os.pathsep.join([str(Path(command[0]).parent), os.environ["PATH"]])  # MLflow looks for uvicorn there
    process = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PATH": path},
        start_new_session=True,
    )
    try:
        end = time.monotonic() + seconds
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, f"{command[:3]} ended"
                assert time.monotonic() < end, f"{command[:3]} does not answer"
                time.sleep(0.1)
        yield process.pid
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(20)


def read_processor_seconds(pid: int) -> float:
    """Processor time of a process and of its children that are alive."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + sum(read_processor_seconds(int(child)) for child in children)


def read_resident_megabytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def post_json(port: int, path: str, body: object, method: str = "POST") -> None:
    import httpx

    httpx.request(method, f"http://127.0.0.1:{port}{path}", json=body, timeout=120).raise_for_status()


def summarise(name: str, results: list[tuple[LoadResult, float]]) -> tuple[str, float]:
    """A line of the table, and the rate of the best round: what others do on the machine only slows down."""
    best, cpu = max(results, key=lambda pair: pair[0].rate)
    failed = sum(result.n_failed for result, _ in results)
    line = f"| {name} | {best.rate:,.0f} | {1e6 * cpu / len(best.latencies):,.0f} | {best.milliseconds(0.5):.1f} "
    return f"{line}| {best.milliseconds(0.99):.1f} | {failed} |", best.rate


def find_cost(results: list[tuple[LoadResult, float]]) -> float:
    """The least processor time a request, in seconds: it depends less on what others do on the machine."""
    return min(cpu / len(result.latencies) for result, cpu in results)


def measure(
    ports: dict[str, tuple[int, int, Callable[[int], bytes], int]],
) -> dict[str, list[tuple[LoadResult, float]]]:
    """Every server in turn, several times."""
    results: dict[str, list[tuple[LoadResult, float]]] = {name: [] for name in ports}
    for _ in range(N_ROUNDS):
        for name, (port, pid, make, n_requests) in ports.items():
            before = read_processor_seconds(pid)
            result = run_load(make, port, n_requests, N_CLIENTS)
            results[name].append((result, read_processor_seconds(pid) - before))
    return results


@contextmanager
def run_priory(folder: str) -> Iterator[tuple[int, int]]:
    port = find_free_port()
    command = [sys.executable, "-m", "priory", "serve", "--data", folder, "--port", str(port)]
    with run_process(*command, port=port) as pid:
        yield port, pid


def prepare_priory(port: int, rows: list[tuple[str, str]]) -> None:
    """One model to ask, and three to teach: as naive Bayes has it, with corrections, and a small table."""
    for name, parameters in (("mail", {}), ("plain", {"calibrate": False}), ("honest", {})):
        post_json(port, f"/v1/models/{name}", {"kind": "text", "parameters": parameters}, "PUT")
        body = {"texts": [text for text, _ in rows], "labels": [label for _, label in rows]}
        post_json(port, f"/v1/models/{name}/learn", body)


def make_learn(name: str, rows: list[tuple[str, str]]) -> Callable[[int], bytes]:
    def make(number: int) -> bytes:
        text, label = rows[number % len(rows)]
        return make_post(f"/v1/models/{name}/learn", json.dumps({"texts": [text[:300]], "labels": [label]}).encode())

    return make


def main(arguments: list[str]) -> None:
    if "--soak" in arguments:
        numbers = [int(argument) for argument in arguments if argument.isdigit()]
        measure_memory(numbers[0] if numbers else 1_000_000, "--write" in arguments)
        return
    rows = make_rows(2000)
    asked = [json.dumps({"texts": [text]}).encode() for text, _ in rows[:500]]
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        port, pid = stack.enter_context(run_priory(folder + "/data"))
        prepare_priory(port, rows)
        bare = find_free_port()
        bare_pid = stack.enter_context(run_process(sys.executable, "-c", BARE, str(bare), port=bare))
        ask = make_asking("/v1/models/mail/predict", asked)
        servers = {
            PREDICT: (port, pid, ask, N_REQUESTS),
            "Priory, durable learn, plain model": (port, pid, make_learn("plain", rows), N_REQUESTS),
            "Priory, durable learn, calibrated model": (port, pid, make_learn("honest", rows), N_REQUESTS // 2),
            "bare Starlette route": (bare, bare_pid, make_asking("/predict", asked), N_REQUESTS),
        }
        if "--mlflow" in arguments:
            python = arguments[arguments.index("--mlflow") + 1]
            scored = [json.dumps({"inputs": [text]}).encode() for text, _ in rows[:500]]
            mlflow = stack.enter_context(run_mlflow(python, folder, rows))
            servers["MLflow scoring server"] = (*mlflow, make_asking("/invocations", scored), N_REQUESTS // 6)
        for asked_port, _, make, _ in servers.values():
            run_load(make, asked_port, 50, 4)
        results = measure(servers)
        rate = max(result.rate for result, _ in results[PREDICT]) / 2
        calm = run_load(ask, port, int(min(5 * rate, 5000)), 16, rate)
    write_results(results, calm, rate, "--write" in arguments)


def make_asking(path: str, bodies: list[bytes]) -> Callable[[int], bytes]:
    return lambda number: make_post(path, bodies[number % len(bodies)])


@contextmanager
def run_mlflow(python: str, folder: str, rows: list[tuple[str, str]]) -> Iterator[tuple[int, int]]:
    """MLflow's scoring server with a pipeline of scikit-learn that has learned the rows."""
    data, model, port = f"{folder}/rows.json", f"{folder}/mlflow", find_free_port()
    Path(data).write_text(json.dumps(rows))
    subprocess.run([python, "-c", MLFLOW_MODEL, model, data], check=True, capture_output=True)
    command = [python, "-m", "mlflow", "models", "serve", "-m", model, "-p", str(port), "--env-manager", "local"]
    with run_process(*command, port=port) as pid:
        yield port, pid


def write_results(
    results: dict[str, list[tuple[LoadResult, float]]], calm: LoadResult, rate: float, is_kept: bool
) -> None:
    lines, rates = [], {}
    for name, measured in results.items():
        line, rates[name] = summarise(name, measured)
        lines.append(line)
    own, cost = rates[PREDICT], find_cost(results[PREDICT])
    ratios = [
        f"one-text predict has {own / rates[name]:.2f} times the rate of the {name} "
        f"({find_cost(results[name]) / cost:.2f} by processor time)"
        for name in ("bare Starlette route", "MLflow scoring server")
        if name in rates
    ]
    text = "\n".join(
        [
            "# The service under load",
            "",
            f"`python benchmarks/service.py --write --mlflow PYTHON`: texts of 1 kB, {N_CLIENTS} clients, one process "
            f"each, h11; the best of {N_ROUNDS} rounds on two shared cores.",
            "",
            "| server | requests/s | processor µs a request | median ms | p99 ms | failed |",
            "|---|---|---|---|---|---|",
            *lines,
            "",
            f"In this run {', '.join(ratios)}.",
            f"At half load ({rate:,.0f} requests/s) predict takes {calm.milliseconds(0.5):.1f} ms at the median and "
            f"{calm.milliseconds(0.99):.1f} ms at p99; {calm.n_failed} failed.",
            "",
        ]
    )
    print(text)
    if is_kept:
        RESULT.write_text(text)


def measure_memory(n_requests: int, is_kept: bool) -> None:
    """Resident memory of the service after each twentieth of the requests.

    In twenty requests eighteen predict, one learns a row and one undoes the last that was learned, so that the model
    stays as it is and whatever grows is a leak. The first half is left out of the slope: caches fill in it.
    """
    rows = make_rows(500)
    asked = [make_post("/v1/models/mail/predict", json.dumps({"texts": [text]}).encode()) for text, _ in rows]
    undo = make_post("/v1/models/plain/undo", b"{}")
    with tempfile.TemporaryDirectory() as folder, run_priory(folder + "/data") as (port, pid):
        prepare_priory(port, rows)
        learn = make_learn("plain", rows)

        def make(number: int) -> bytes:
            return {0: learn(number), 10: undo}.get(number % 20) or asked[number % 500]

        run_load(learn, port, 100, 1)  # for the undoings that overtake a learning
        start, memory = time.monotonic(), list[float]()
        for part in range(1, N_SOAK_PARTS + 1):
            result = run_load(make, port, n_requests // N_SOAK_PARTS, 32)
            assert result.n_failed == 0, result.n_failed
            memory.append(read_resident_megabytes(pid))
            print(f"{n_requests * part // N_SOAK_PARTS:>9,} requests {memory[-1]:8.1f} MB", flush=True)
        seconds = time.monotonic() - start
    half = N_SOAK_PARTS // 2
    slope = float(np.polyfit(np.arange(half), memory[half:], 1)[0]) * N_SOAK_PARTS / n_requests * 1e6
    text = (
        f"# The memory of the service\n\n`python benchmarks/service.py --soak {n_requests} --write`: of twenty "
        f"requests eighteen predict, one learns and one undoes it; 32 clients, {seconds:,.0f} s.\n\n"
        f"| requests | resident memory |\n|---|---|\n"
        + "".join(f"| {n_requests * (p + 1) // N_SOAK_PARTS:,} | {mb:.1f} MB |\n" for p, mb in enumerate(memory))
        + f"\nA line through the second half grows by {slope:+.1f} MB in 1,000,000 requests.\n"
    )
    print(text)
    if is_kept:
        MEMORY_RESULT.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
