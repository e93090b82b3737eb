// What is played at each moment. Runs on the audio thread (worklet.js), or where browsers allow none, on the page's (player.js).

const REPORTS_PER_S = 20;
const REFILL_S = 0.2; // after a gap, so that it does not stutter at every piece
const FADE_S = 0.002; // a gap's and a stop's edges, which would click

/**
 * A ring of samples between the network and the loudspeaker.
 *
 * report({frame, rendered, sounding, held, change}) is called 20 times a second and at every change; all are counted in samples:
 * when; how many have been played; how many of those were not zero; how many wait. change: "play", "gap", "end" or null.
 */
export class Playout {
  #rate;
  #report;
  #ring;
  #first = 0;
  #held = 0;
  #rendered = 0;
  #sounding = 0;
  #state = "wait";
  #ended = false;
  #level = 1; // rises to 1 after a gap
  #last = 0; // what is fading away
  #reported = -Infinity;

  constructor(rate, report) {
    this.#rate = rate;
    this.#report = report;
    this.#ring = new Float32Array(8 * rate);
  }

  /** {samples: Float32Array}, {end: true}: no more come, or {stop: true}: silence, now. */
  take({ samples, end, stop }) {
    if (samples && !this.#ended) this.#hold(samples);
    if (stop) this.#held = 0;
    if (stop || end) this.#ended = true;
  }

  /** Fill `out`, which is heard from `frame` on. False once nothing is ever heard again. */
  fill(out, frame) {
    let given = 0;
    const wanted = this.#state === "wait" || this.#ended ? 0 : REFILL_S * this.#rate;
    if (this.#state !== "play" && this.#held > wanted) {
      this.#level = this.#state === "wait" ? 1 : 0;
      this.#change("play", frame);
    }
    if (this.#state === "play") {
      given = this.#give(out);
      if (given < out.length && !this.#ended) this.#change("gap", frame + given);
    }
    if (this.#ended && this.#held === 0 && given < out.length && this.#state !== "end") this.#change("end", frame + given);
    this.#fade(out, given);
    if (frame - this.#reported >= this.#rate / REPORTS_PER_S) this.#say(null, frame);
    return this.#state !== "end" || this.#last !== 0;
  }

  #hold(samples) {
    const need = this.#held + samples.length;
    if (need > this.#ring.length) {
      const larger = new Float32Array(2 * need);
      const head = this.#ring.subarray(this.#first, this.#first + this.#held);
      larger.set(head);
      larger.set(this.#ring.subarray(0, this.#held - head.length), head.length);
      this.#ring = larger;
      this.#first = 0;
    }
    const at = (this.#first + this.#held) % this.#ring.length;
    const head = samples.subarray(0, this.#ring.length - at);
    this.#ring.set(head, at);
    this.#ring.set(samples.subarray(head.length), 0);
    this.#held = need;
  }

  #give(out) {
    const count = Math.min(out.length, this.#held);
    const rise = 1 / (FADE_S * this.#rate);
    for (let i = 0; i < count; i++) {
      const sample = this.#ring[this.#first];
      this.#first = (this.#first + 1) % this.#ring.length;
      if (sample !== 0) this.#sounding++;
      this.#last = out[i] = sample * this.#level;
      if (this.#level < 1) this.#level = Math.min(1, this.#level + rise);
    }
    this.#held -= count;
    this.#rendered += count;
    return count;
  }

  #fade(out, from) {
    const fall = Math.exp(-1 / (FADE_S * this.#rate));
    for (let i = from; i < out.length; i++) {
      this.#last = Math.abs(this.#last) < 1e-4 ? 0 : this.#last * fall;
      out[i] = this.#last;
    }
  }

  #change(state, frame) {
    this.#state = state;
    this.#say(state, frame);
  }

  #say(change, frame) {
    this.#reported = frame;
    this.#report({ frame, rendered: this.#rendered, sounding: this.#sounding, held: this.#held, change });
  }
}
