// Little-endian signed 16-bit PCM to samples.

/** Keeps what a piece of the stream has of a sample until the next piece brings the rest. */
export class PcmReader {
  #low = -1; // a sample's first byte, or none

  /** @param {Uint8Array} bytes @returns {Float32Array} in [-1, 1) */
  read(bytes) {
    const carried = this.#low < 0 ? 0 : 1;
    const samples = new Float32Array((bytes.length + carried) >> 1);
    let at = 0;
    for (let i = 0; i < samples.length; i++) {
      const low = i === 0 && carried ? this.#low : bytes[at++];
      samples[i] = (((low | (bytes[at++] << 8)) << 16) >> 16) / 32768;
    }
    if (at < bytes.length) this.#low = bytes[at];
    else if (samples.length) this.#low = -1;
    return samples;
  }
}
