"""Workers and coordinators that are really killed: the result is that of an undisturbed field, bit for bit."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from benchmarks.disturbed import Disturbed, busy_cores, field_job, start
from benchmarks.field_problems import fingerprint

from fouriscope.field import FieldFolder, FieldProgress, connected, coordinator, tile_task
from fouriscope.field.dispatch import ClusterError
from fouriscope.field.tile_store import TileStore
from fouriscope.field.tile_task import Outcome, reconstruct_tile, with_frames_memory
from fouriscope.run import load_config
from tests.field.problems import assert_same_result, open_sockets, run, stitched, write_field

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", range(2))
def test_workers_can_be_killed_at_any_time(
    configuration: Path, undisturbed: Path, client: Any, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    killed: list[int] = []
    over = threading.Event()

    def kill_now_and_then() -> None:
        # On an idle machine the whole field takes a second.
        while not over.wait(rng.uniform(0.05, 0.3)) and len(killed) < 3:
            if client.pids:
                killed.append(rng.choice(client.pids))
                os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill_now_and_then)
    killer.start()
    try:
        assert not run(configuration, tmp_path / "field", client, attempts=20).failed
    finally:
        over.set()
        killer.join()
    assert killed
    assert_same_result(tmp_path / "field", undisturbed)


POISONED_TILE = 2


def poisoned(folder: str, index: int, memory: int | None, attempts: int) -> Outcome:
    """A task: a tile, one of which kills every worker that begins it."""
    if index == POISONED_TILE:

        def deadly(*_: Any) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        tile_task._reconstruct = deadly  # type: ignore[assignment]
    return reconstruct_tile(folder, index, memory, attempts)


def test_a_tile_that_kills_its_workers_is_given_up_and_the_rest_goes_on(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even one that others learn from; when the same command is given again they learn what they had missed."""
    learning: dict[str, dict[str, Any]] = {"calibration": {"zernike": True}, "stop": {"iterations": 6}}
    configuration = write_field(tmp_path / "data", **learning)
    run(configuration, tmp_path / "undisturbed", client)
    with monkeypatch.context() as patched:
        patched.setattr(coordinator, "reconstruct_tile", poisoned)
        result = run(configuration, tmp_path / "field", client, attempts=2)
    assert list(result.failed) == [2]
    assert "died 2 times" in result.failed[2]
    alone, whole = FieldFolder.open(tmp_path / "field"), FieldFolder.open(tmp_path / "undisturbed")
    assert alone.done() == set(range(12)) - {2}
    # Tile 3 learns from tiles 0 and 6, so it is what it would have been; tile 1 learns from 0 and 2.
    np.testing.assert_array_equal(alone.store.images(3), whole.store.images(3))
    assert np.any(alone.store.images(1) != whole.store.images(1))
    assert not run(configuration, tmp_path / "field", client).failed
    assert_same_result(tmp_path / "field", tmp_path / "undisturbed")


def command(configuration: Path, out: Path) -> list[str]:
    script = "from fouriscope.cli.app import main; main()"
    options = ["--out", str(out), "--tile", "32", "--workers", "2", "--quiet"]
    return [sys.executable, "-c", script, "field", str(configuration), *options]


def wait_for_tiles(folder: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    while len(list((folder / "tiles").glob("*.json"))) < count:
        assert process.poll() is None, "the command ended before it had so many tiles"
        time.sleep(0.01)


def test_the_coordinator_can_be_killed(configuration: Path, undisturbed: Path, tmp_path: Path) -> None:
    """Twice: in the middle of the tiles, and again after the same command has gone on."""
    folder = tmp_path / "field"
    kept: dict[str, int] = {}
    for count in (3, 8):
        with subprocess.Popen(command(configuration, folder)) as process:
            wait_for_tiles(folder, count, process)
            workers = psutil.Process(process.pid).children(recursive=True)
            with contextlib.suppress(psutil.NoSuchProcess):  # on a busy machine a field may end while we look
                for each in (psutil.Process(process.pid), *workers):
                    assert open_sockets(each) == [], "somebody else could connect"
            process.kill()
        assert not psutil.wait_procs(workers, timeout=30)[1], "a worker stayed behind"
        records = {path.name: path.stat().st_mtime_ns for path in (folder / "tiles").glob("*.json")}
        assert kept.items() <= records.items(), "a tile that was committed was done again"
        kept = records
    subprocess.run(command(configuration, folder), check=True, timeout=120)
    after = {path.name: path.stat().st_mtime_ns for path in (folder / "tiles").glob("*.json")}
    assert kept.items() <= after.items()
    assert_same_result(folder, undisturbed)


def interrupt(configuration: Path, folder: Path, number: signal.Signals) -> None:
    """Begin a field, and send ``number`` to the command and all that belongs to it, as a terminal does."""
    process = subprocess.Popen(
        [part for part in command(configuration, folder) if part != "--quiet"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    wait_for_tiles(folder, 3, process)
    os.killpg(process.pid, number)
    said, complained = process.communicate(timeout=60)
    assert process.returncode == 130
    assert not complained, complained.decode()
    assert b"to continue: fouriscope field" in said
    assert FieldFolder.open(folder).run.status()["state"] == "interrupted"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_batch_systems_and_closed_terminals_interrupt_it(
    configuration: Path, tmp_path: Path, number: signal.Signals
) -> None:
    interrupt(configuration, tmp_path / "field", number)


def test_ctrl_c_keeps_what_is_done(configuration: Path, undisturbed: Path, tmp_path: Path) -> None:
    folder = tmp_path / "field"
    interrupt(configuration, folder, signal.SIGINT)
    subprocess.run(command(configuration, folder), check=True, timeout=120)
    assert_same_result(folder, undisturbed)


def test_a_scheduler_that_goes_is_an_error(configuration: Path, tmp_path: Path) -> None:
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        client = Client(cluster.scheduler_address)
        gone = threading.Event()

        def close_after_two(progress: FieldProgress) -> None:
            if progress.done >= 2 and not gone.is_set():
                gone.set()
                client.close()

        with pytest.raises(ClusterError, match="scheduler is gone"):
            run(configuration, tmp_path / "field", client, watch=close_after_two)
    assert len(FieldFolder.open(tmp_path / "field").done()) >= 2


def test_kills_while_other_programs_take_both_cores(configuration: Path, undisturbed: Path, tmp_path: Path) -> None:
    """Some of what `python -m benchmarks soak` does for long."""
    disturbed = Disturbed(field_job(configuration), fingerprint(undisturbed), 8.0, random.Random(3))
    with busy_cores(2):
        disturbed.run(tmp_path / "field", 3, full_disks=0.0)
    assert disturbed.kills
    assert not +disturbed.found, f"lost, differing or hung: {disturbed.said}"


def test_what_a_kill_left_while_the_folder_was_made_is_no_hindrance(
    configuration: Path, undisturbed: Path, client: Any, tmp_path: Path
) -> None:
    import shutil

    folder = tmp_path / "field"
    folder.mkdir()
    for name in ("provenance.json", "status.json", "config.toml"):
        shutil.copy(undisturbed / name, folder / name)
    (folder / "tiles" / "attempts").mkdir(parents=True)
    run(configuration, folder, client)
    assert_same_result(folder, undisturbed)


def test_a_full_disk_ends_the_field_and_not_one_tile_after_the_other(
    configuration: Path, undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    from fouriscope.errors import RunFolderError
    from fouriscope.field import tile_task
    from fouriscope.field.coordinator import TileRun

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    folder = tmp_path / "field"
    shutil.copytree(undisturbed, folder)
    field = FieldFolder.open(folder)
    field.store.discard(4)
    monkeypatch.setattr(tile_task, "_reconstruct", full)
    outcome = tile_task.reconstruct_tile(str(folder), 4)
    assert outcome[:2] == (4, "stop")
    assert "No space left on device" in outcome.reason
    with connected(workers=1) as client, pytest.raises(RunFolderError, match="make room, then give the same command"):
        TileRun(field, client)._take_in(outcome)

    def gone(*_: Any) -> None:
        raise OSError(116, "Stale file handle")

    monkeypatch.setattr(tile_task, "_reconstruct", gone)
    assert tile_task.reconstruct_tile(str(folder), 4).state == "again"


@pytest.mark.parametrize("most_bytes", [0, 1000, 4000, 20_000])
def test_a_limit_on_the_size_of_files_is_said(configuration: Path, tmp_path: Path, most_bytes: int) -> None:
    """Whoever meets it, the command or a worker."""
    process = start(field_job(configuration).begin(tmp_path / "field"), most_bytes=most_bytes)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 2, said
    assert "cannot be written (File too large); files may not become so large here: raise the limit" in said
    assert said.count("\n") == 1


def test_attempts_are_counted_by_what_began(tmp_path: Path) -> None:
    store = TileStore(tmp_path)
    store.create(3, 1, (4, 4))
    assert [store.begin(1), store.begin(1), store.begin(2)] == [1, 2, 1]
    store.forget_attempts()
    assert store.begin(1) == 1


def test_each_attempt_keeps_fewer_frames(configuration: Path) -> None:
    config = load_config(configuration)
    frame = 88 * 64 * 4
    budgets = [with_frames_memory(config, configuration.parent, attempt, None).frames.memory for attempt in (1, 2, 9)]
    assert budgets == [51 * frame, 51 * frame // 4, 2 * frame]
    bounded = with_frames_memory(config, configuration.parent, 1, 10 * frame)
    assert bounded.frames.memory == 10 * frame


def test_a_result_is_replaced_only_by_a_whole_one(
    configuration: Path, undisturbed: Path, client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk while the picture is drawn: the old result stays, and the next run makes a new one."""
    import shutil

    from fouriscope.field import reconstruct

    folder = tmp_path / "field"
    shutil.copytree(undisturbed, folder)
    FieldFolder.open(folder).store.discard(2)
    before = stitched(folder)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(reconstruct, "write_quality", full)
        with pytest.raises(OSError, match="No space left"):
            run(configuration, folder, client)
    np.testing.assert_array_equal(stitched(folder), before)
    assert FieldFolder.open(folder).run.status()["state"] == "failed"
    run(configuration, folder, client)
    assert_same_result(folder, undisturbed)
