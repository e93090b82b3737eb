// The audio thread's end of player.js: messages in go to Playout.take, its reports come out.

import { Playout } from "./playout.js";

class Speaker extends AudioWorkletProcessor {
  #playout = new Playout(sampleRate, (report) => this.port.postMessage(report));

  constructor() {
    super();
    this.port.onmessage = ({ data }) => this.#playout.take(data);
  }

  process(inputs, outputs) {
    return this.#playout.fill(outputs[0][0], currentFrame);
  }
}

registerProcessor("speaker", Speaker);
