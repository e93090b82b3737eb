"""The soak run itself, short and on toys: it passes on a sound engine and finds what it is there to find."""

import pytest

from ouzel.api import Voice
from ouzel.bench.soak import fingerprint, main, soak
from ouzel.engine import Engine
from ouzel.schedule import ScheduleSpec
from toys import ToyDecoder, ToyFrontend, ToyTalker


def toy_voice(talker=None):
    return Voice(Engine(talker or ToyTalker(), ToyDecoder(), schedule=ScheduleSpec.parse("fixed:1/4")), ToyFrontend())


def test_a_sound_engine_passes():
    with toy_voice() as fresh:
        expected = fingerprint(fresh)
    with toy_voice() as voice:
        report = soak(voice, expected, points=60, probe_every=5)
    assert [p for p in report.problems if not p.startswith("memory")] == []
    assert (report.points, report.probes) == (60, 12)


def test_state_that_outlives_a_cancel_is_found():
    class Leaky(ToyTalker):
        """Counts utterances and lets the count into the codes."""

        seen = 0

        def prefill(self, rows, sampling):
            state = super().prefill(rows, sampling)
            self.seen += 1
            state.key += self.seen
            return state

    with toy_voice(Leaky()) as voice:
        report = soak(voice, fingerprint(voice), points=3, probe_every=1)
    assert len([p for p in report.problems if "differs" in p]) == 3


def test_a_missing_bundle_is_one_sentence(capsys, tmp_path):
    assert main([str(tmp_path / "nothing")]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("ouzel.bench.soak: error: ")


def test_usage_errors_exit_with_two():
    with pytest.raises(SystemExit) as caught:
        main(["--points"])
    assert caught.value.code == 2
