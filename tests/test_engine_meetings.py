"""Rare meetings of an end, a wait and a third party: who must be woken, who must not be held up, what must not be lost."""

import asyncio
import gc
import os
import sys
import threading

import numpy as np
import pytest

from ouzel.engine import Engine, EngineOptions
from ouzel.errors import ClosedError, SynthesisError, UsageError
from ouzel.schedule import ScheduleSpec
from toys import SPF, Barrier, ToyDecoder, ToyTalker, reference_audio, segment

SHORT = ScheduleSpec.parse("fixed:2/6")


def engine_of(talker=None, decoder=None, **options) -> Engine:
    return Engine(talker or ToyTalker(), decoder or ToyDecoder(), options=EngineOptions(fade_in_s=0.0, **options), schedule=SHORT)


async def listen_until(utterance, event: threading.Event, then) -> None:
    """Wait for a chunk of `utterance` while `then` runs on another thread, after `event`."""
    waiting = asyncio.ensure_future(anext(utterance))
    await asyncio.sleep(0)
    assert await asyncio.to_thread(event.wait, 30)
    await asyncio.to_thread(then)
    await asyncio.wait_for(waiting, 30)


def test_a_task_is_told_when_the_engine_closes_while_no_worker_has_its_utterance():
    hold = Barrier()
    engine = engine_of(ToyTalker(on_prefill=hold))
    busy = engine.submit([segment("keeps the talker busy")])
    assert hold.reached.wait(30)
    other = engine.submit([segment("waits")])
    closing = threading.Thread(target=engine.close)
    with pytest.raises(ClosedError):
        asyncio.run(listen_until(other, hold.reached, closing.start))
    hold.go.set()
    closing.join(30)
    assert busy.finish_reason == "cancelled"


def test_a_task_is_told_when_a_worker_breaks(monkeypatch):
    thrown = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda args: thrown.set())
    hold = Barrier()
    engine = engine_of(ToyTalker(on_prefill=hold))
    busy = engine.submit([segment("keeps the talker busy")])
    assert hold.reached.wait(30)
    other = engine.submit([segment("waits")])
    monkeypatch.setattr(engine._registry, "talker_turn", lambda: 1 / 0)
    with pytest.raises((ZeroDivisionError, ClosedError)):
        asyncio.run(listen_until(other, hold.reached, hold.go.set))
    engine.close()
    assert thrown.is_set()
    assert busy.done


def test_a_task_that_is_lost_with_its_loop_cancels():
    hold = Barrier()
    with engine_of(ToyTalker(10_000, on_prefill=hold)) as engine:

        async def listen(utterance):
            await anext(utterance)

        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)  # "Task was destroyed but it is pending"
        task = loop.create_task(listen(engine.submit([segment("lost")])))
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
        del task
        gc.collect()
        hold.go.set()
        assert engine.wait_idle(30)


def test_two_tasks_waiting_for_one_utterance_are_refused_instead_of_one_hanging():
    hold = Barrier()

    async def both(utterance):
        first = asyncio.ensure_future(anext(utterance))
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="Another task"):
            await anext(utterance)
        hold.go.set()
        assert (await first).index == 0

    with engine_of(ToyTalker(on_prefill=hold)) as engine:
        asyncio.run(both(engine.submit([segment("twice")])))


def test_cancel_after_an_error_drops_the_audio_before_it_and_the_error_stays():
    with engine_of(ToyTalker(40), ToyDecoder(poison_at=20)) as engine:
        utterance = engine.submit([segment("poison")])
        assert engine.wait_idle(30)
        utterance.cancel()
        with pytest.raises(SynthesisError, match="non-finite"):
            next(utterance)
        assert utterance.finish_reason == utterance.metrics.finish_reason == "error"


def test_an_interrupt_handler_may_cancel_while_its_thread_holds_the_lock():
    hold = Barrier(at=4)
    with engine_of(ToyTalker(1000, on_step=hold)) as engine:
        utterance = engine.submit([segment("interrupted")])
        assert hold.reached.wait(30)
        with engine._registry.lock:  # where a signal may meet the consumer
            utterance.cancel()
        assert list(utterance) == []
        hold.go.set()
        assert engine.wait_idle(30)
        assert utterance.finish_reason == "cancelled"


def test_listening_in_any_order_ends_although_all_places_are_taken_by_paused_ones():
    with engine_of(ToyTalker(100), max_active=2, high_water_s=0.5) as engine:
        utterances = [engine.submit([segment(f"number {i}")]) for i in range(5)]
        for i in (4, 2, 3, 0, 1):
            expected = reference_audio(f"number {i}", talker=ToyTalker(100))
            heard: list[np.ndarray] = []
            reader = threading.Thread(target=lambda u=utterances[i], h=heard: h.append(u.read().samples), daemon=True)
            reader.start()
            reader.join(30)
            assert heard, "the listener waits for ever"
            np.testing.assert_array_equal(heard[0], expected)


def test_a_task_too_may_listen_to_one_that_waits_behind_paused_ones():
    async def listen(utterance):
        return await asyncio.wait_for(utterance.aread(), 30)

    with engine_of(ToyTalker(100), max_active=1, high_water_s=0.5) as engine:
        paused = engine.submit([segment("nobody listens")])
        speech = asyncio.run(listen(engine.submit([segment("someone does")])))
        assert len(speech.samples) == 100 * SPF
        paused.cancel()


def test_what_was_dropped_keeps_nobody_out():
    step, decode = Barrier(at=12), Barrier()
    with engine_of(ToyTalker(30, on_step=step), ToyDecoder(on_decode=decode), max_active=2, max_waiting=1) as engine:
        active = [engine.submit([segment("one")]), engine.submit([segment("two")])]
        assert step.reached.wait(30)
        assert decode.reached.wait(30)  # no worker is free to look who is gone
        engine.submit([segment("dropped at once")])
        waiting = engine.submit([segment("comes after it")])
        step.go.set()
        decode.go.set()
        assert [u.read().finish_reason for u in (*active, waiting)] == ["stop"] * 3


def test_a_long_wait_is_no_stall_while_the_workers_get_on():
    steps: list[int] = []
    beat = threading.Event()

    def slowly(frame: int) -> None:
        steps.append(frame)
        beat.wait(0.05)

    options = EngineOptions(fade_in_s=0.0, stall_timeout_s=1.0)
    with Engine(ToyTalker(25, on_step=slowly), ToyDecoder(), options=options, schedule=ScheduleSpec.parse("full")) as engine:
        assert len(engine.submit([segment("one lot, longer than the time-out in the making")]).read().samples) == 25 * SPF

        async def listen():
            return await engine.submit([segment("the same for a task")]).aread()

        assert len(asyncio.run(listen()).samples) == 25 * SPF


def test_a_forked_copy_says_so_instead_of_waiting_for_threads_that_are_not_there():
    with engine_of(ToyTalker(200), high_water_s=0.5) as engine:
        utterance = engine.submit([segment("goes on in the parent")])
        next(utterance)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                engine.submit([segment("in the child")])
            except ClosedError as exc:
                engine.close()
                code = 0 if "process" in str(exc) else 2
            finally:
                sys.stdout.flush()
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(utterance.read().samples) == 198 * SPF
