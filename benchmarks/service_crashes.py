"""The service under kill -9: nothing that it acknowledged is lost, and nothing is done twice.

    python benchmarks/service_crashes.py load [kills] [operations] [seconds]    # 1,000 and 200,000 by default
    python benchmarks/service_crashes.py soak [kills] [operations] [seconds]    # nine of ten predict: 50 and 1,000,000
    python benchmarks/service_crashes.py calls [every]         # every n-th writing system call; needs strace
    python benchmarks/service_crashes.py backups [runs] [seconds]  # backup under load, kill -9, restore: 100
    python benchmarks/service_crashes.py NAME ... --write      # its table, into benchmarks/results/service_crashes.md

Under load, clients learn, undo and forget through a Unix socket while the service is killed at random moments, also
while it starts. What was not acknowledged is sent again with the same key. In the end every model must be, byte for
byte, the model of the rows that should be left. With backups, each kill strikes during or after a backup that is made
under load; this backup, or one of the four before it, is restored with the list of erased rows of the folder that was
killed. At system calls, a script of changes is struck once at every call that writes, by kill -9, a full disk or a
failing disk, and run again: what was acknowledged gets the same answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import priory as pr
from priory.errors import NotLearnedError, ServiceError
from priory.service import backups
from priory.service.changes import ChangeRequest, CreateRequest, ForgetRequest, LearnRequest, UndoRequest
from priory.service.labelled_rows import RowBatch
from priory.service.model_store import ModelStore
from priory.service.server import (
    Address,
    Service,
    ServiceSettings,
    find_files_with,
    make_application,
    make_server,
    open_sockets,
)
from priory.service.writer import Writer
from service import read_resident_megabytes

RESULT = Path(__file__).parent / "results" / "service_crashes.md"
N_CLIENTS, N_MODELS = 64, 2
N_BACKUPS = 5
MAX_SECONDS = 3000  # after which a run ends with the numbers that it has reached
CALLS = "openat,write,pwrite64,writev,fsync,fdatasync,ftruncate,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat"
FAULTS = ("signal=KILL", "error=ENOSPC", "error=EIO")
KEYS_OF_FORGOTTEN_ROWS = {"b", "c", "forget row"}


# -- under load ------------------------------------------------------------------------------------------------------


def serve(folder: Path) -> None:
    service = Service(ServiceSettings(folder / "data"))
    server = make_server(service, make_application(service))
    server.run(open_sockets(Address(port=-1, socket_path=folder / "s.sock")))


def start_nursery(folder: Path) -> tuple[int, int]:
    """A process that has imported everything, and forks a service whenever it is asked to."""
    with tempfile.TemporaryDirectory() as other:
        run_script(Path(other) / "data")
    ask_read, ask_write = os.pipe()
    tell_read, tell_write = os.pipe()
    if os.fork() == 0:
        os.close(ask_write)
        while os.read(ask_read, 1):
            child = os.fork()
            if child == 0:
                try:
                    serve(folder)
                finally:
                    os._exit(1)
            os.write(tell_write, struct.pack("i", child))
            os.waitpid(child, 0)
        os._exit(0)
    os.close(ask_read)
    return ask_write, tell_read


class Teacher:
    """One client with its own rows: it knows what should be left of them."""

    def __init__(
        self, number: int, random_state: random.Random, has_names: bool = False, share_asked: float = 0.0
    ) -> None:
        self.model, self.random, self.share_asked = f"model{number % N_MODELS}", random_state, share_asked
        self.number, self.n_operations, self.has_names = number, 0, has_names
        self.live: dict[int, tuple[str, str]] = {}  # id -> row
        self.n_by_operation: Counter[str] = Counter()
        self.leaving: int | None = None  # the id of the row that a request under way removes
        self.forgotten: list[str] = []

    def choose(self) -> tuple[str, dict[str, object], Callable[[int], None]]:
        """The next operation, its body, and what to note once its id is known."""
        self.n_operations += 1
        if self.live and self.random.random() < self.share_asked:
            return "predict", {"texts": [f"a{self.number} b{self.n_operations % 97}"]}, void
        chance = self.random.random()
        if self.live and chance < 0.05:
            target = self.random.choice(list(self.live))
            operation = "forget" if chance < (0.03 if self.has_names else 0.005) else "undo"
            self.leaving = target
            return operation, {"id": target}, lambda number: self.remove(target, operation)
        n = self.n_operations
        name = f"row{self.number}x{n}x " if self.has_names else ""  # a word that no other row has
        row = (f"{name}a{self.number} b{n % 97} c{n // 97 % 89} d{n // 8633}", "spam" if n % 3 else "ham")
        return "learn", {"texts": [row[0]], "labels": [row[1]]}, lambda number: self.live.__setitem__(number, row)

    def remove(self, target: int, operation: str) -> None:
        text, _ = self.live.pop(target)
        self.leaving = None
        if operation == "forget":
            self.forgotten.append(text)

    def list_staying(self) -> set[str]:
        """The texts of rows that are learned, and that no request under way removes."""
        return {text for number, (text, _) in self.live.items() if number != self.leaving}


def void(value: object) -> None:
    """For what is done for its effect."""


class Attack:
    """Clients that teach, and a hand that kills."""

    n_clients, has_names = N_CLIENTS, False

    def __init__(
        self, folder: Path, n_kills: int, n_operations: int, seconds: float, seed: int, share_asked: float = 0.0
    ) -> None:
        self.folder, self.n_kills, self.n_operations = folder, n_kills, n_operations
        self.end = time.monotonic() + seconds
        self.teachers = [
            Teacher(i, random.Random(seed * 1000 + i), self.has_names, share_asked) for i in range(self.n_clients)
        ]
        self.random = random.Random(seed)
        self.ask, self.tell = start_nursery(folder)
        self.n_acknowledged = self.n_done_kills = self.n_sent_again = 0
        self.is_up, self.is_over = asyncio.Event(), False
        self.starts: list[float] = []
        self.memory: list[float] = []  # megabytes, before each kill

    def start_service(self) -> int:
        os.write(self.ask, b"!")
        return int(struct.unpack("i", os.read(self.tell, 4))[0])

    async def run(self) -> None:
        pid = self.start_service()
        await self.wait_until_ready()
        for number in range(N_MODELS):
            body = {"kind": "text", "parameters": {"calibrate": False}}
            status, _ = await self.send_once("PUT", f"/v1/models/model{number}", body, "")
            assert status == 201, status
        clients = [asyncio.create_task(self.teach(teacher)) for teacher in self.teachers]
        while self.n_done_kills < self.n_kills or self.n_acknowledged < self.n_operations:
            if time.monotonic() > self.end:
                break
            for client in clients:
                if client.done():
                    client.result()
            goal = self.n_operations * (self.n_done_kills + 1) / self.n_kills
            while self.n_acknowledged < min(goal, self.n_operations) and time.monotonic() < self.end:
                await asyncio.sleep(0.005)
            await asyncio.sleep(self.random.uniform(0, 0.02))
            if self.n_done_kills < self.n_kills:
                pid = await self.kill_and_start(pid)
        self.is_over = True
        await asyncio.gather(*clients)
        os.kill(pid, signal.SIGKILL)
        os.close(self.ask)

    async def kill_and_start(self, pid: int) -> int:
        self.is_up.clear()  # clients that knock while nobody is there would only slow down the start
        self.memory.append(read_resident_megabytes(pid))
        os.kill(pid, signal.SIGKILL)
        self.n_done_kills += 1
        start = time.monotonic()
        pid = self.start_service()
        if self.random.random() < 0.1 and self.n_done_kills < self.n_kills:  # once more, while it starts
            await asyncio.sleep(self.random.uniform(0, 0.1))
            return await self.kill_and_start(pid)
        await self.wait_until_ready()
        self.starts.append(time.monotonic() - start)
        return pid

    async def wait_until_ready(self) -> None:
        for _ in range(6000):
            try:
                await self.send_once("GET", "/health", None, "")
                self.is_up.set()
                return
            except (OSError, EOFError, asyncio.IncompleteReadError):
                await asyncio.sleep(0.005)
        raise AssertionError("the service does not start")

    async def teach(self, teacher: Teacher) -> None:
        connection = None
        while not self.is_over:
            operation, body, note = teacher.choose()
            path = f"/v1/models/{teacher.model}/{operation}"
            key = f"{teacher.number}-{teacher.n_operations}"
            while True:
                try:
                    connection = connection or await asyncio.open_unix_connection(str(self.folder / "s.sock"))
                    status, answer = await exchange(connection, "POST", path, body, key)
                    break
                except (OSError, EOFError, asyncio.IncompleteReadError):
                    connection = None
                    self.n_sent_again += 1
                    await self.is_up.wait()
                    await asyncio.sleep(0.005)
            assert status == 200, (status, answer, path, body)
            note(answer.get("id", 0))
            teacher.n_by_operation[operation] += 1
            self.n_acknowledged += 1
        if connection is not None:
            connection[1].close()

    async def send_once(self, method: str, path: str, body: object, key: str) -> tuple[int, dict[str, int]]:
        connection = await asyncio.open_unix_connection(str(self.folder / "s.sock"))
        try:
            return await exchange(connection, method, path, body, key)
        finally:
            connection[1].close()


class BackupAttack(Attack):
    """Kills during and after backups, each of which is restored beside what is left of the folder."""

    n_clients, has_names = 16, True
    n_rows = n_forgotten = 0
    made: tuple[tuple[Path, list[set[str]]], ...] = ()  # the last backups, and the rows that each must have

    async def kill_and_start(self, pid: int) -> int:
        archive = self.folder / f"{self.n_done_kills % N_BACKUPS}.tar"
        self.made = (*self.made, (archive, [teacher.list_staying() for teacher in self.teachers]))[-N_BACKUPS:]
        backup = asyncio.create_task(asyncio.to_thread(backups.back_up, self.folder / "data", archive))
        if self.random.random() < 0.5:
            await backup
        await asyncio.sleep(self.random.uniform(0, 0.2))
        self.is_up.clear()
        os.kill(pid, signal.SIGKILL)
        self.n_done_kills += 1
        await backup
        self.check_restored(*self.random.choice(self.made))
        pid = self.start_service()
        await self.wait_until_ready()
        return pid

    def check_restored(self, archive: Path, before: list[set[str]]) -> None:
        restored = self.folder / "restored"
        backups.restore(archive, restored, backups.list_erasures(self.folder / "data"))
        store = ModelStore(restored)
        for number in range(N_MODELS):
            teachers = [
                (t, known) for t, known in zip(self.teachers, before, strict=True) if t.number % N_MODELS == number
            ]
            found = set(store.get(f"model{number}").estimator.vocabulary_)
            expected = {text.split()[0] for t, known in teachers for text in known & t.list_staying()}
            forgotten = {text.split()[0] for t, _ in teachers for text in t.forgotten}
            assert expected <= found, f"lost: {sorted(expected - found)}"
            assert not forgotten & found, f"came back: {sorted(forgotten & found)}"
            self.n_rows, self.n_forgotten = self.n_rows + len(expected), self.n_forgotten + len(forgotten)
        store.close()
        for text in [text for teacher in self.teachers for text in teacher.forgotten[-1:]]:
            assert not [*find_files_with(restored, text)], f"in a file: {text}"
        shutil.rmtree(restored)


def attack_backups(n_runs: int, seconds: float = MAX_SECONDS, seed: int = 1) -> str:
    with tempfile.TemporaryDirectory(prefix="priory-crash-") as name:
        began = time.monotonic()
        attack = BackupAttack(Path(name), n_runs, 50 * n_runs, seconds, seed)
        asyncio.run(attack.run())
        return (
            f"| {attack.n_done_kills:,} | {attack.n_acknowledged:,} | {attack.n_rows:,} | 0 "
            f"| {attack.n_forgotten:,} | 0 | {time.monotonic() - began:.0f} s |"
        )


Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def exchange(
    connection: Connection, method: str, path: str, body: object, key: str
) -> tuple[int, dict[str, int]]:
    """One request and its answer on an open connection."""
    reader, writer = connection
    content = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(content)}\r\n" + (f"Idempotency-Key: {key}\r\n" if key else "") + "\r\n"
    writer.write(head.encode() + content)
    await writer.drain()
    answer = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(answer.partition("content-length: ")[2].partition("\r\n")[0])
    return int(answer.split()[1]), json.loads(await reader.readexactly(length))


def pack(model: object, folder: Path) -> bytes:
    path = folder / "packed.model"
    pr.save(model, path)  # type: ignore[arg-type]  # any estimator
    return path.read_bytes()


def attack_under_load(
    n_kills: int, n_operations: int, seconds: float = MAX_SECONDS, seed: int = 1, share_asked: float = 0.0
) -> str:
    with tempfile.TemporaryDirectory(prefix="priory-crash-") as name:
        folder = Path(name)
        began = time.monotonic()
        attack = Attack(folder, n_kills, n_operations, seconds, seed, share_asked)
        asyncio.run(attack.run())
        duration = time.monotonic() - began
        store = ModelStore(folder / "data")
        for number in range(N_MODELS):
            rows = [row for t in attack.teachers if t.model == f"model{number}" for row in t.live.values()]
            texts, labels = zip(*rows, strict=True)
            expected = pr.TextClassifier(calibrate=False).fit(texts, labels)
            found = store.get(f"model{number}")
            assert found.n_rows == len(rows), f"{found.n_rows} rows instead of {len(rows)}"
            assert pack(found.estimator, folder) == pack(expected, folder), f"model{number} is not as it should be"
        store.close()
        done = sum((t.n_by_operation for t in attack.teachers), Counter())
        operations = " / ".join(f"{done[operation]:,}" for operation in ("learn", "undo", "forget", "predict"))
        start = sorted(attack.starts)[len(attack.starts) // 2]
        half = len(attack.memory) // 2
        memory = f"{np.median(attack.memory[:half]):.0f} / {np.median(attack.memory[half:]):.0f} MB"
        return (
            f"| {attack.n_done_kills:,} | {attack.n_acknowledged:,} | {operations} | {attack.n_sent_again:,} | 0 | 0 "
            f"| {start:.2f} s | {memory} | {duration:.0f} s |"
        )


# -- at system calls -------------------------------------------------------------------------------------------------

Answers = dict[str, int]


def run_script(
    folder: Path,
    is_searched: bool = False,
    acknowledged: Answers | None = None,
    tell: Callable[[bytes], object] = void,
) -> Answers:
    """A life of a model in ten changes; returns the id of each that was acknowledged.

    If ``is_searched``, no file may hold a forgotten row while the service still has the folder. What was acknowledged
    is sent again, to be answered as before, except where the key is erased with the row that it stood for.
    """
    answers: Answers = {}
    try:
        store = ModelStore(folder)
        writer = Writer(store)
    except Exception as error:
        if isinstance(error, AssertionError):
            raise
        return answers

    def ask(key: str, request: ChangeRequest) -> int:
        if acknowledged and key in acknowledged and key in KEYS_OF_FORGOTTEN_ROWS:
            answers[key] = acknowledged[key]
            return answers[key]
        try:
            answers[key] = writer.submit(request).result(30).id
            tell(json.dumps({key: answers[key]}).encode() + b"\n")
        except NotLearnedError:
            return 0  # the rows were forgotten before the service was killed
        except ServiceError as error:
            if error.status == 409 and isinstance(request, CreateRequest):
                return 1
            if error.status not in (404, 409, 503, 507):
                raise
        return answers.get(key, 0)

    def learn(key: str, text: str) -> int:
        rows = RowBatch("text", (text,), ("spam",))
        return ask(key, LearnRequest("mail", "ann", key, key.encode(), rows=rows))

    ask("create", CreateRequest("mail", "ann", parameters=b'{"calibrate":false}'))
    first, second = learn("a", "win cash"), learn("b", "lunch secretone " + "padding " * 3000)
    ask("undo", UndoRequest("mail", "ann", "undo", b"undo", target=first or 1))
    learn("c", "a secrettwo")
    ask("forget", ForgetRequest("mail", "ann", "forget", b"forget", target=second or 1))
    rows = RowBatch("text", ("a secrettwo",), ("spam",))
    ask("forget row", ForgetRequest("mail", "ann", "forget row", b"row", rows=rows))
    learn("d", "noon")
    left = [path for word in ("secretone", "secrettwo") for path in find_files_with(folder, word)]
    assert not (is_searched and left), f"forgotten rows are in {left}"
    try:
        writer.close()
        store.close()
    except OSError:
        pass
    return answers


def strike(folder: Path, *options: str) -> tuple[Answers, str]:
    """Run the script in a child process under strace; return what it acknowledged, and the log of strace."""
    go_read, go_write = os.pipe()
    tell_read, tell_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.read(go_read, 1)
        code = 1
        try:
            run_script(folder, tell=lambda line: os.write(tell_write, line))
            code = 0
        finally:
            os._exit(code)
    os.close(tell_write)
    command = ["strace", "-f", "-qq", "-p", str(child), "-e", f"trace={CALLS}", *options]
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(command, stderr=log) as strace:
        while "TracerPid:\t0\n" in Path(f"/proc/{child}/status").read_text():
            time.sleep(0.001)
        os.write(go_write, b"!")
        told = b"".join(iter(lambda: os.read(tell_read, 65536), b""))
        os.waitpid(child, 0)
        strace.wait()
        log.seek(0)
        seen = log.read()
    for descriptor in (go_read, go_write, tell_read):
        os.close(descriptor)
    return {key: number for line in told.splitlines() for key, number in json.loads(line).items()}, seen


def list_points() -> Iterator[tuple[str, int]]:
    """Every writing system call of the script."""
    with tempfile.TemporaryDirectory() as folder:
        _, seen = strike(Path(folder) / "data")
    for name, times in Counter(re.findall(r"^(?:\[pid +\d+\] )?(\w+)\(", seen, re.M)).items():
        yield from ((name, n) for n in range(1, times + 1))


def survive(fault: str, name: str, n: int) -> None:
    """Strike one call, then run the script again: the model is as it should be, and no forgotten row is left."""
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder) / "data"
        before, _ = strike(folder, "-e", f"inject={name}:{fault}:when={n}")
        where = f"at {name} {n} by {fault}"
        after = run_script(folder, is_searched=True, acknowledged=before)
        changed = {key for key in before if key != "create" and before[key] != after.get(key)}
        assert not changed, f"{where}: {changed} was acknowledged, and is answered differently"
        store = ModelStore(folder)
        expected = pr.TextClassifier(calibrate=False).fit(["noon"], ["spam"])
        same = pack(store.get("mail").estimator, Path(name_of_folder)) == pack(expected, Path(name_of_folder))
        store.close()
        assert same, f"{where}: the model is not as it should be"
        left = [path for word in ("secretone", "secrettwo") for path in find_files_with(folder, word)]
        assert not left, f"{where}: forgotten rows are in {left}"


def strike_all(every: int = 1) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        run_script(Path(folder) / "data")  # imports everything, so that no child has to
    points = list(list_points())[::every]
    lines = []
    for fault in FAULTS:
        for name, n in points:
            survive(fault, name, n)
        lines.append(f"| {fault} | {len(points)} | 0 | 0 |")
    return lines


LOAD_HEADING = (
    "| kill -9 | operations acknowledged | learned / undone / forgotten / predicted | sent again | lost | doubled "
    "| median start | median memory, first / second half | time |\n|---|---|---|---|---|---|---|---|---|"
)
BACKUPS_HEADING = (
    "| backups, killed and restored | operations acknowledged | rows checked | lost | forgotten rows checked "
    "| came back | time |\n|---|---|---|---|---|---|---|"
)
CALLS_HEADING = "| fault | writing system calls struck | lost | doubled or left behind |\n|---|---|---|---|"


def soak(n_kills: int, n_operations: int, seconds: float = MAX_SECONDS) -> str:
    return attack_under_load(n_kills, n_operations, seconds, share_asked=0.9)


def strike_calls(every: int) -> str:
    return "\n".join(strike_all(every))


Part = tuple[str, str, Callable[..., str], list[int]]
PARTS: dict[str, Part] = {  # what is done, the head of the table, its rows, and the usual numbers
    "load": (f"{N_CLIENTS} clients teach {N_MODELS} models:", LOAD_HEADING, attack_under_load, [1000, 200_000]),
    "soak": ("nine of ten requests are predictions:", LOAD_HEADING, soak, [50, 1_000_000]),
    "calls": (
        "a script of changes, struck at its writing system calls and run again:",
        CALLS_HEADING,
        strike_calls,
        [1],
    ),
    "backups": (
        "backups under load, the service killed during or after each; one of the last five is restored with the list "
        "of erased rows of the folder that was killed:",
        BACKUPS_HEADING,
        attack_backups,
        [100],
    ),
}


def write_part(name: str, text: str) -> None:
    """Replace one part of the page of results."""
    title, *parts = RESULT.read_text().split("\n\n## ")
    by_name = {part.partition("\n")[0]: part.strip() for part in parts} | {name: f"{name}\n\n{text}"}
    RESULT.write_text("\n\n## ".join([title, *(by_name[part] for part in PARTS if part in by_name)]) + "\n")


def main(arguments: list[str]) -> None:
    name, *given = [argument for argument in arguments if argument != "--write"]
    introduction, heading, run, usual = PARTS[name]
    numbers = list(map(int, given)) or usual
    command = " ".join(["python benchmarks/service_crashes.py", name, *map(str, numbers)])
    text = f"`{command}`: {introduction}\n\n{heading}\n{run(*numbers)}"
    print(text)
    if "--write" in arguments:
        write_part(name, text)


if __name__ == "__main__":
    main(sys.argv[1:])
