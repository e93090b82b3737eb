// One text on its way from the server to the ear, and the account of how it went.

import { ask, Problem } from "./api.js";
import { PcmReader } from "./pcm.js";
import { Player } from "./player.js";

// A long text is not all kept here: reading pauses, and then the server does. Well before its patience with slow readers ends.
const AHEAD_S = { pause: 30, resume: 15 };

class Interrupted extends Problem {
  constructor() {
    super("The connection ended before the speech did; the server's log says why.");
  }
}

export class Speech {
  began = performance.now(); // all times are ms of this clock
  firstAt = null; // the first samples are here
  lastAt = null; // the latest
  heardAt = null; // the first sample is played
  gaps = 0;
  gapMs = 0;
  warnings = "";
  stopped = false;
  #gapAt = null;
  #pausedMs = 0;
  #abort = new AbortController();
  #player;
  #watch;
  #body;
  #moved = () => {};
  #ended;
  #hush;
  #silence = new Promise((resolve) => (this.#hush = resolve));

  /** body: of POST v1/audio/speech. rate: Hz, as foreseen. watch: {arrived(at, seconds), played(report, at), failed(problem)}. */
  constructor(body, rate, watch) {
    this.#body = { ...body, response_format: "pcm", stream_format: "audio" };
    this.#watch = watch;
    this.#play(rate);
  }

  get arrivedS() {
    return this.#player.fed / this.#player.rate;
  }

  get playedS() {
    return this.#player.rendered / this.#player.rate;
  }

  get aheadS() {
    return this.#player.aheadS;
  }

  get silenced() {
    return this.#player.silenced;
  }

  /** Time to make and bring a second of audio; pauses that were ours do not count. */
  get rtf() {
    return this.arrivedS ? (this.lastAt - this.began - this.#pausedMs) / 1000 / this.arrivedS : null;
  }

  /** Until all is played or `stop`. Throws Problem when there is nothing to play. */
  async run() {
    try {
      await Promise.all([this.#receive(), this.#player.ready]);
    } catch (error) {
      if (this.stopped) return;
      this.#abort.abort();
      if (!(error instanceof Interrupted)) {
        this.#player.stop();
        throw error;
      }
      this.#watch.failed(error); // what is here is still played
    }
    if (this.stopped) return;
    this.#player.end();
    await Promise.race([this.#ended, this.#silence]);
  }

  /** Silent at once, here and, since the connection ends, at the server. */
  stop() {
    this.stopped = true;
    this.#player.stop();
    this.#abort.abort();
    this.#moved();
    this.#hush();
  }

  #play(rate) {
    this.#ended = new Promise((resolve) => {
      this.#player = new Player(rate, (report, at) => {
        this.#account(report.change, at);
        this.#watch.played(report, at);
        this.#moved();
        if (report.change === "end") resolve();
      });
    });
  }

  async #receive() {
    const answer = await ask("v1/audio/speech", { body: this.#body, signal: this.#abort.signal });
    this.warnings = answer.headers.get("x-warnings") ?? "";
    const rate = Number(answer.headers.get("x-sample-rate")) || this.#player.rate;
    if (rate !== this.#player.rate) {
      this.#player.stop();
      this.#play(rate);
    }
    const pcm = new PcmReader();
    const reader = answer.body.getReader();
    for (;;) {
      const { done, value } = await reader.read().catch(() => {
        throw new Interrupted();
      });
      if (done) break;
      const samples = pcm.read(value);
      if (samples.length === 0) continue;
      this.lastAt = performance.now();
      this.firstAt ??= this.lastAt;
      this.#watch.arrived(this.lastAt, samples.length / rate);
      this.#player.feed(samples);
      if (this.aheadS > AHEAD_S.pause) await this.#pause();
    }
    await this.#player.ready;
  }

  async #pause() {
    const began = performance.now();
    while (this.aheadS > AHEAD_S.resume && !this.stopped) await new Promise((resolve) => (this.#moved = resolve));
    this.#pausedMs += performance.now() - began;
  }

  #account(change, at) {
    if (this.#gapAt !== null && change !== null) {
      if (change === "play") {
        this.gaps++;
        this.gapMs += at - this.#gapAt;
      }
      this.#gapAt = null;
    }
    if (change === "play") this.heardAt ??= at;
    if (change === "gap") this.#gapAt = at;
  }
}
