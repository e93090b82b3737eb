// Samples to the loudspeaker.

import { Scheduled } from "./scheduled.js";

const SETTLE_MS = 200; // until the output's own buffer and a fading stop have been heard

/** An audio context at one rate, asleep while nobody plays. */
class Output {
  players = 0;

  constructor(rate) {
    this.rate = rate;
    this.audio = new AudioContext({ sampleRate: rate, latencyHint: "interactive" });
    // Browsers give a worklet only to pages from this machine or over HTTPS; elsewhere pieces are scheduled.
    this.loaded = this.audio.audioWorklet?.addModule("page/worklet.js") ?? Promise.resolve();
  }

  join() {
    this.players++;
    this.audio.resume();
  }

  /** {node, post}: what plays, and how to tell it something. */
  open(onReport) {
    if (this.audio.audioWorklet) {
      const node = new AudioWorkletNode(this.audio, "speaker", { numberOfInputs: 0, outputChannelCount: [1] });
      node.port.onmessage = ({ data }) => onReport(data);
      return { node, post: (message) => node.port.postMessage(message, message.samples ? [message.samples.buffer] : []) };
    }
    return new Scheduled(this.audio, onReport);
  }

  /** When a frame is, was or will be heard: ms, as of performance.now(). */
  heardAt(frame) {
    const { contextTime, performanceTime } = this.audio.getOutputTimestamp();
    const time = frame / this.rate;
    if (performanceTime > 0) return performanceTime + 1000 * (time - contextTime);
    return performance.now() + 1000 * (time - this.audio.currentTime + (this.audio.outputLatency || 0)); // it has only begun
  }

  leave() {
    if (--this.players > 0) return;
    if (output === this) this.audio.suspend();
    else this.audio.close();
  }
}

let output = null; // the latest

/** Plays one utterance. To be made while a click or a key press is handled, or browsers keep the sound off. */
export class Player {
  fed = 0; // samples
  rendered = 0;
  #output;
  #opened = null;
  #waiting = []; // messages for a node that is not there yet
  #onReport;
  #over = false;

  /** rate: Hz; a browser throws at what it cannot do. onReport(report, at): see worklet.js; at: ms, as of performance.now(). */
  constructor(rate, onReport) {
    if (output?.rate !== rate) {
      const former = output;
      output = new Output(rate);
      if (former?.players === 0) former.audio.close();
    }
    this.rate = rate;
    this.#output = output;
    this.#output.join();
    this.#onReport = onReport;
    this.ready = this.#output.loaded.then(() => this.#open());
  }

  /** Whether the browser, or the system, lets nothing be heard at present. */
  get silenced() {
    return this.#output.audio.state !== "running";
  }

  get aheadS() {
    return (this.fed - this.rendered) / this.rate;
  }

  feed(samples) {
    this.fed += samples.length;
    this.#post({ samples });
  }

  /** No more samples come; what is there is played. */
  end() {
    this.#post({ end: true });
  }

  /** Silence, now. */
  stop() {
    this.#waiting = [];
    this.#post({ stop: true });
    if (this.silenced) this.#close();
  }

  #open() {
    if (this.#over) return;
    this.#opened = this.#output.open((report) => this.#report(report));
    for (const message of this.#waiting.splice(0)) this.#post(message);
    this.#opened.node.connect(this.#output.audio.destination);
  }

  #post(message) {
    if (this.#opened === null) this.#waiting.push(message);
    else this.#opened.post(message);
  }

  #report(report) {
    if (this.#over) return;
    this.rendered = report.rendered;
    if (report.change === "end") this.#close();
    this.#onReport(report, this.#output.heardAt(report.frame));
  }

  #close() {
    if (this.#over) return;
    this.#over = true;
    setTimeout(() => {
      this.#opened?.node.disconnect();
      this.#output.leave();
    }, SETTLE_MS);
  }
}
