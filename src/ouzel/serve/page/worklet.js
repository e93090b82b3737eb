// The audio thread: a ring of samples between the network and the loudspeaker. player.js tells it, and listens to it.
//
// In: {samples: Float32Array}, {end: true}: no more come, {stop: true}: silence, now.
// Out, 20 times a second and at every change: {frame, rendered, change}: when, and how many samples have been played by then,
// both counted in samples; change: "play", "gap", "end" or null.

const REPORTS_PER_S = 20;
const REFILL_S = 0.2; // after a gap, so that it does not stutter at every piece; see also scheduled.js
const FADE_S = 0.002; // a gap's and a stop's edges, which would click

class Speaker extends AudioWorkletProcessor {
  #ring = new Float32Array(8 * sampleRate);
  #first = 0;
  #held = 0;
  #rendered = 0;
  #state = "wait";
  #ended = false;
  #level = 1; // rises to 1 after a gap
  #last = 0; // what is fading away
  #reported = -Infinity;

  constructor() {
    super();
    this.port.onmessage = ({ data: { samples, end, stop } }) => {
      if (samples && !this.#ended) this.#hold(samples);
      if (stop) this.#held = 0;
      if (stop || end) this.#ended = true;
    };
  }

  process(inputs, outputs) {
    const out = outputs[0][0];
    let given = 0;
    const wanted = this.#state === "wait" || this.#ended ? 0 : REFILL_S * sampleRate;
    if (this.#state !== "play" && this.#held > wanted) {
      this.#level = this.#state === "wait" ? 1 : 0;
      this.#change("play", 0);
    }
    if (this.#state === "play") {
      given = this.#give(out);
      if (given < out.length && !this.#ended) this.#change("gap", given);
    }
    if (this.#ended && this.#held === 0 && given < out.length && this.#state !== "end") this.#change("end", given);
    this.#fade(out, given);
    if (currentFrame - this.#reported >= sampleRate / REPORTS_PER_S) this.#report(null, 0);
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
    const rise = 1 / (FADE_S * sampleRate);
    for (let i = 0; i < count; i++) {
      this.#last = out[i] = this.#ring[this.#first] * this.#level;
      this.#first = (this.#first + 1) % this.#ring.length;
      if (this.#level < 1) this.#level = Math.min(1, this.#level + rise);
    }
    this.#held -= count;
    this.#rendered += count;
    return count;
  }

  #fade(out, from) {
    const fall = Math.exp(-1 / (FADE_S * sampleRate));
    for (let i = from; i < out.length; i++) {
      this.#last = Math.abs(this.#last) < 1e-4 ? 0 : this.#last * fall;
      out[i] = this.#last;
    }
  }

  #change(state, offset) {
    this.#state = state;
    this.#report(state, offset);
  }

  #report(change, offset) {
    this.#reported = currentFrame;
    this.port.postMessage({ frame: currentFrame + offset, rendered: this.#rendered, change });
  }
}

registerProcessor("speaker", Speaker);
