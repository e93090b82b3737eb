// A picture of one utterance over wall time: pieces as they arrive, what is played and where it stalls, how much waits.

const LEAST_S = 4;
const LABELS = 72; // px
const ROWS = { arrived: [8, 22], playback: [40, 22], buffer: [74, 44] }; // top, height; px
const STEPS = [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200];

export class Timeline {
  #canvas;
  #drawing = 0;
  #began = 0;
  #arrivals = []; // [s, s of audio]
  #spans = []; // {kind: "play" | "gap", from, to}, s
  #depths = []; // [s, s of audio that waits]
  #now = 0;
  #ahead = 0;
  #on = false;

  constructor(canvas) {
    this.#canvas = canvas;
    new ResizeObserver(() => this.#draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
  }

  /** A new utterance; at: ms of performance.now(), as everywhere here. */
  begin(at) {
    this.#began = at;
    this.#arrivals = [];
    this.#spans = [];
    this.#depths = [[0, 0]];
    this.#now = this.#ahead = 0;
    this.#on = true;
    this.#draw();
  }

  arrived(at, seconds) {
    this.#arrivals.push([this.#s(at), seconds]);
    this.#draw();
  }

  /** change: "play", "gap", "end" or null; ahead: s of audio that waits. */
  played(at, change, ahead) {
    if (!this.#on) return;
    this.#now = this.#s(at);
    const last = this.#spans.at(-1);
    if (last) last.to = this.#now;
    if (change === "play" || change === "gap") this.#spans.push({ kind: change, from: this.#now, to: this.#now });
    this.#depths.push([this.#now, ahead]);
    this.#ahead = ahead;
    if (change === "end") this.finish();
    this.#draw();
  }

  /** Nothing more is played: a wait that no sound ended is no gap. */
  finish() {
    this.#on = false;
    this.#ahead = 0;
    if (this.#spans.at(-1)?.kind === "gap") this.#spans.pop();
    this.#draw();
  }

  #s(at) {
    return (at - this.#began) / 1000;
  }

  #draw() {
    if (this.#drawing === 0) this.#drawing = requestAnimationFrame(() => this.#paint());
  }

  #paint() {
    this.#drawing = 0;
    const canvas = this.#canvas;
    const { clientWidth: width, clientHeight: height } = canvas;
    const dots = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * dots);
    canvas.height = Math.round(height * dots);
    const pen = canvas.getContext("2d");
    pen.scale(dots, dots);
    const style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(`--${name}`);
    const end = Math.max(LEAST_S, this.#now + this.#ahead, this.#arrivals.at(-1)?.[0] ?? 0) * 1.02;
    const x = (s) => LABELS + (s / end) * (width - LABELS);

    this.#paintFrame(pen, colour, { width, height, end, x, font: style.fontFamily });
    this.#paintArrivals(pen, colour, x);
    this.#paintPlayback(pen, colour, x);
    this.#paintDepth(pen, colour, x);
  }

  #paintFrame(pen, colour, { width, height, end, x, font }) {
    pen.font = `12px ${font}`;
    pen.fillStyle = colour("soft");
    for (const [name, [top, tall]] of Object.entries(ROWS)) pen.fillText(name, 0, top + tall / 2 + 4);
    const step = STEPS.find((s) => (s / end) * (width - LABELS) >= 52) ?? STEPS.at(-1);
    pen.strokeStyle = colour("line");
    pen.textAlign = "center";
    pen.beginPath();
    for (let s = 0; s <= end; s += step) {
      pen.moveTo(Math.round(x(s)) + 0.5, 0);
      pen.lineTo(Math.round(x(s)) + 0.5, height - 20);
      if (x(s) < width - 14) pen.fillText(`${s} s`, x(s), height - 5);
    }
    pen.stroke();
  }

  #paintArrivals(pen, colour, x) {
    const [top, tall] = ROWS.arrived;
    pen.fillStyle = colour("arrived");
    let last = -Infinity;
    for (const [s] of this.#arrivals) {
      if (x(s) - last < 1) continue;
      last = x(s);
      pen.fillRect(last - 1.5, top, 3, tall);
    }
  }

  #paintPlayback(pen, colour, x) {
    const [top, tall] = ROWS.playback;
    for (const { kind, from, to } of this.#spans) {
      const gap = kind === "gap";
      pen.fillStyle = colour(gap ? "gap" : "playing");
      // A gap is lower as well as red, for those who do not tell the colours apart, and never too short to be seen.
      pen.fillRect(x(from), gap ? top + tall - 6 : top, Math.max(gap ? 2 : 0, x(to) - x(from)), gap ? 6 : tall);
    }
    if (this.#ahead > 0) {
      pen.fillStyle = colour("ahead");
      pen.fillRect(x(this.#now), top, x(this.#now + this.#ahead) - x(this.#now), tall);
    }
  }

  #paintDepth(pen, colour, x) {
    const [top, tall] = ROWS.buffer;
    const most = this.#depths.reduce((a, [, depth]) => Math.max(a, depth), 0);
    if (most === 0) return;
    pen.beginPath();
    pen.moveTo(x(0), top + tall);
    for (const [s, depth] of this.#depths) pen.lineTo(x(s), top + tall * (1 - depth / most));
    pen.lineTo(x(this.#depths.at(-1)[0]), top + tall);
    pen.fillStyle = pen.strokeStyle = colour("depth");
    pen.globalAlpha = 0.3;
    pen.fill();
    pen.globalAlpha = 1;
    pen.stroke();
    pen.textAlign = "left";
    pen.fillStyle = colour("soft");
    pen.fillText(`${most.toFixed(1)} s`, 0, top + tall);
  }
}
