// worklet.js' part for pages that get no audio thread: every piece is scheduled behind the last one, so that nothing of what is
// heard waits for the page's own thread. Same messages, same reports.

const REPORT_MS = 50;
const REFILL_S = 0.2;
const LEAD_S = 0.1; // from the decision to play to the first sample: one that comes late runs into the next
const FADE_S = 0.002;

export class Scheduled {
  node;
  #audio;
  #onReport;
  #timer = setInterval(() => this.#look(), REPORT_MS);
  #state = "wait";
  #ended = false;
  #waiting = []; // not yet scheduled
  #until = 0; // the frame at which what is scheduled ends
  #ahead = 0; // samples before that frame, if nothing interrupts: what is scheduled since the last gap
  #rendered = 0; // before the last gap

  constructor(audio, onReport) {
    this.#audio = audio;
    this.#onReport = onReport;
    this.node = new GainNode(audio);
  }

  post({ samples, end, stop }) {
    this.#look();
    if (this.#state === "end") return;
    if (samples) this.#waiting.push(samples);
    if (stop) this.#silence();
    if (stop || end) this.#ended = true;
    this.#schedule();
    this.#look();
  }

  get #now() {
    return Math.round(this.#audio.currentTime * this.#audio.sampleRate);
  }

  /** Samples that have been played at `frame`. */
  #played(frame) {
    return this.#rendered + Math.max(0, Math.min(this.#ahead, this.#ahead - (this.#until - frame)));
  }

  #schedule() {
    const count = this.#waiting.reduce((sum, samples) => sum + samples.length, 0);
    const rate = this.#audio.sampleRate;
    if (count === 0 || (this.#state === "gap" && !this.#ended && count < REFILL_S * rate)) return;
    if (this.#state !== "play") {
      this.#until = this.#now + Math.round(LEAD_S * rate);
      this.#change("play", this.#until);
    }
    for (const samples of this.#waiting.splice(0)) {
      const buffer = new AudioBuffer({ length: samples.length, sampleRate: rate });
      buffer.copyToChannel(samples, 0);
      const source = new AudioBufferSourceNode(this.#audio, { buffer });
      source.connect(this.node);
      source.start(this.#until / rate);
      this.#until += samples.length;
      this.#ahead += samples.length;
    }
  }

  #silence() {
    this.#waiting = [];
    this.node.gain.setValueAtTime(1, this.#audio.currentTime);
    this.node.gain.linearRampToValueAtTime(0, this.#audio.currentTime + FADE_S);
    this.#rendered = this.#played(this.#now);
    this.#until = this.#now;
    this.#ahead = 0;
  }

  /** See what has become of it since. */
  #look() {
    if (this.#state === "play" && this.#now >= this.#until) {
      this.#rendered += this.#ahead;
      this.#ahead = 0;
      this.#change("gap", this.#until);
    }
    if (this.#state !== "play" && this.#state !== "end" && this.#ended && this.#waiting.length === 0) {
      clearInterval(this.#timer);
      this.#change("end", this.#until);
    } else if (this.#state !== "end") {
      this.#onReport({ frame: this.#now, rendered: this.#played(this.#now), change: null });
    }
  }

  #change(state, frame) {
    this.#state = state;
    this.#onReport({ frame, rendered: this.#played(frame), change: state });
  }
}
