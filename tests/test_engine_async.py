"""The asyncio side of an utterance: same chunks, same end, no thread or task left."""

import asyncio

import numpy as np
import pytest

from ouzel.engine import Engine, EngineOptions
from ouzel.errors import SynthesisError
from ouzel.schedule import ScheduleSpec
from toys import Barrier, Failing, ToyDecoder, ToyTalker, reference_audio, segment

PLAIN = EngineOptions(fade_in_s=0.0)
SHORT = ScheduleSpec.parse("fixed:2/6")


def test_async_for_gives_the_same_audio():
    async def listen(engine):
        return [chunk async for chunk in engine.submit([segment("async")])]

    with Engine(ToyTalker(), ToyDecoder(), options=PLAIN, schedule=SHORT) as engine:
        chunks = asyncio.run(listen(engine))
    np.testing.assert_array_equal(np.concatenate([c.samples for c in chunks]), reference_audio("async"))
    assert chunks[-1].is_last


def test_many_at_once_on_one_loop():
    async def all_of_them(engine):
        return await asyncio.gather(*(engine.submit([segment(f"task {i}", seed=i)]).aread() for i in range(8)))

    with Engine(ToyTalker(), ToyDecoder(), options=PLAIN, schedule=SHORT) as engine:
        for i, speech in enumerate(asyncio.run(all_of_them(engine))):
            np.testing.assert_array_equal(speech.samples, reference_audio(f"task {i}", seed=i))


def test_a_cancelled_task_cancels_its_utterance():
    barrier = Barrier()

    async def start_and_cancel(engine):
        utterance = engine.submit([segment("cancelled task")])
        task = asyncio.ensure_future(utterance.aread())
        await asyncio.to_thread(barrier.reached.wait, 30)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return utterance

    with Engine(ToyTalker(on_prefill=barrier), ToyDecoder(), options=PLAIN, schedule=SHORT) as engine:
        utterance = asyncio.run(start_and_cancel(engine))
        assert utterance.finish_reason == "cancelled"
        barrier.go.set()
        assert engine.wait_idle(30)


def test_cancel_from_a_thread_wakes_the_waiting_task():
    barrier = Barrier()

    async def listen(engine):
        utterance = engine.submit([segment("woken")])
        await asyncio.to_thread(barrier.reached.wait, 30)
        canceller = asyncio.get_running_loop().run_in_executor(None, utterance.cancel)
        heard = [chunk async for chunk in utterance]
        await canceller
        return heard

    with Engine(ToyTalker(on_prefill=barrier), ToyDecoder(), options=PLAIN, schedule=SHORT) as engine:
        assert asyncio.run(listen(engine)) == []
        barrier.go.set()


def test_errors_reach_the_task():
    async def listen(engine):
        async for _ in engine.submit([segment("fails")]):
            pass

    with (
        Engine(ToyTalker(on_step=Failing(3)), ToyDecoder(), options=PLAIN, schedule=SHORT) as engine,
        pytest.raises(SynthesisError, match="broke down"),
    ):
        asyncio.run(listen(engine))


def test_a_stall_ends_with_an_error_here_too():
    barrier = Barrier()
    options = EngineOptions(stall_timeout_s=0.05)

    async def listen(engine):
        async for _ in engine.submit([segment("hangs")]):
            pass

    with Engine(ToyTalker(on_step=barrier), ToyDecoder(), options=options) as engine:
        with pytest.raises(SynthesisError, match="No audio came"):
            asyncio.run(listen(engine))
        barrier.go.set()


def test_a_dead_loop_does_not_break_the_engine():
    async def abandon(engine):
        utterance = engine.submit([segment("abandoned")])
        await anext(utterance)
        return utterance

    with Engine(ToyTalker(), ToyDecoder(), options=PLAIN, schedule=SHORT) as engine:
        utterance = asyncio.run(abandon(engine))
        assert utterance.read().finish_reason == "stop"
