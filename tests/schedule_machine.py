"""A simulated machine that speaks one utterance by a schedule."""

from ouzel.audio.gate import deficits
from ouzel.schedule import FRAME_MS, ScheduleRun, SpeedModel


def speak(run: ScheduleRun, speed: SpeedModel, frames: int, *, serial: bool, late: dict[int, float] | None = None) -> list[float]:
    """Deficits in ms of each chunk on a machine of `speed`; `late` adds ms to single frames.

    serial: talker and decoder take turns. Otherwise the talker goes on while the decoder works through its queue.
    """
    now = decoded = 0.0
    arrivals = []
    for frame in range(1, frames + 2):
        finished = frame > frames
        if not finished:
            now += speed.frame_ms + (late or {}).get(frame, 0.0)
        count = run.offer(min(frame, frames), now, finished=finished)
        if count:
            decoded = max(decoded, now) + speed.decode_ms(count)
            arrivals.append((decoded, count * FRAME_MS))
            if serial:
                now = decoded
    return deficits(arrivals)
