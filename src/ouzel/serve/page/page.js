// The page's controls.

import { ask, key, Problem } from "./api.js";
import { Speech } from "./speech.js";
import { Timeline } from "./timeline.js";

const $ = (id) => document.getElementById(id);
const timeline = new Timeline($("timeline"));
let model = { sample_rate: 24000, speeds: [1, 1], task_type: "" };
let speech = null; // the one that is being spoken

const tell = (text) => ($("status").textContent = text);
const complain = (text) => ($("problem").textContent = text);
const seconds = (s) => `${s.toFixed(s < 10 ? 2 : 1)} s`;
const milliseconds = (ms) => `${Math.round(ms)} ms`;

// ---- what the server has

async function learn() {
  tell("Asking the server for its voices…");
  try {
    const [voices, models] = await Promise.all(["v1/audio/voices", "v1/audio/models"].map(async (path) => (await ask(path)).json()));
    model = { ...model, ...models.models[0] };
    show(voices.voices);
    complain("");
    tell("Ready.");
  } catch (problem) {
    tell("");
    fail(problem);
    if (problem.status === 503) setTimeout(learn, 1000 * (problem.retryAfterS ?? 2));
  }
}

function show(voices) {
  $("model").textContent = model.id;
  // Objects, or names alone; what has a `voice` is another name of that one.
  const own = voices.filter((voice) => !voice.voice).map((voice) => (voice.name ? voice : { id: voice, name: voice }));
  const chosen = $("voice").value;
  $("voice").replaceChildren(...own.map(({ id, name }) => new Option(name, id)));
  if (own.some(({ id }) => id === chosen)) $("voice").value = chosen;
  $("voice").onchange = () => ($("voice-about").textContent = own.find(({ id }) => id === $("voice").value)?.description ?? "");
  $("voice").onchange();
  $("voice-field").hidden = own.length === 0;
  $("instructions-field").hidden = model.task_type !== "VoiceDesign";
  const [slowest, fastest] = model.speeds;
  $("speed-field").hidden = slowest === fastest;
  Object.assign($("speed"), { min: slowest, max: fastest });
  $("forget").hidden = key.get() === null;
}

// ---- what goes wrong

function fail(problem) {
  if (problem.status === 401) askForKey();
  else complain(problem instanceof Problem ? problem.message : `The browser cannot play this: ${problem.message}`);
}

function askForKey() {
  $("key-problem").textContent = key.get() === null ? "" : "The server does not take this key.";
  key.forget();
  $("forget").hidden = true;
  $("key").value = "";
  $("key-form").onsubmit = (event) => {
    event.preventDefault();
    const given = $("key").value.trim();
    if (!/^[\x20-\x7e\xa0-\xff]+$/.test(given)) {
      $("key-problem").textContent = given ? "A key has no such characters." : "Type or paste the key.";
      return;
    }
    key.set(given);
    $("key-dialog").close("given");
    learn(); // what speaks is a click, since browsers want one for the sound
  };
  $("key-dialog").showModal();
}

$("key-cancel").addEventListener("click", () => $("key-dialog").close());
$("key-dialog").addEventListener("close", () => {
  if ($("key-dialog").returnValue !== "given") complain("Without its API key this server says nothing; Speak asks for it again.");
  $("key-dialog").returnValue = "";
  $("text").focus();
});
$("forget").addEventListener("click", () => {
  key.forget();
  $("forget").hidden = true;
  stop();
  tell("The key is forgotten.");
  $("text").focus();
});

// ---- speak and stop

function order() {
  const body = { input: $("text").value };
  if (!$("voice-field").hidden) body.voice = $("voice").value;
  if (!$("speed-field").hidden && $("speed").value !== "1") body.speed = Number($("speed").value);
  if (!$("instructions-field").hidden) body.instructions = $("instructions").value;
  return body;
}

async function speak() {
  stop();
  complain("");
  let mine;
  try {
    mine = speech = new Speech(order(), model.sample_rate, {
      arrived(at, length) {
        if (mine !== speech) return;
        timeline.arrived(at, length);
        count(mine);
      },
      played(report, at) {
        if (mine !== speech) return;
        timeline.played(at, report.change, mine.aheadS);
        if (report.change === "play") tell("Speaking.");
        count(mine);
      },
      failed: (problem) => mine === speech && complain(problem.message),
    });
    $("stop").disabled = false;
    timeline.begin(mine.began);
    count(mine);
    tell("Waiting for the first audio…");
    warnIfSilenced(mine);
    await mine.run();
    if (!mine.stopped) tell(`Spoken: ${seconds(mine.playedS)} of audio.${mine.warnings ? ` ${mine.warnings}` : ""}`);
  } catch (problem) {
    if (speech !== mine) return;
    tell("");
    fail(problem);
  }
  if (speech === mine) rest();
}

function stop() {
  if (speech === null) return;
  const mine = speech;
  mine.stop();
  timeline.finish();
  tell(`Stopped after ${seconds(mine.playedS)} of audio.`);
  rest();
}

function rest() {
  if (speech !== null) describe(speech);
  speech = null;
  timeline.finish();
  if (document.activeElement === $("stop")) $("speak").focus(); // a button that is disabled loses the focus to nowhere
  $("stop").disabled = true;
}

/** The numbers under the picture. */
function count(one) {
  const since = (at) => (at === null ? "–" : milliseconds(at - one.began));
  $("ttfa").textContent = since(one.firstAt);
  $("heard").textContent = since(one.heardAt);
  $("rtf").textContent = one.rtf === null ? "–" : one.rtf.toFixed(2);
  $("depth").textContent = seconds(one.aheadS);
  $("gaps").textContent = one.gaps === 0 ? "none" : `${one.gaps} (${milliseconds(one.gapMs)})`;
  $("length").textContent = seconds(one.arrivedS);
}

/** The picture in words, for those who do not see it. */
function describe(one) {
  const said = ["ttfa", "rtf", "gaps", "length"].map((id) => $(id).textContent);
  $("timeline").setAttribute(
    "aria-label",
    one.firstAt === null
      ? "Nothing arrived."
      : `First audio after ${said[0]}, real-time factor ${said[1]}, gaps: ${said[2]}, ${said[3]} of audio arrived, ${seconds(one.playedS)} played.`,
  );
}

function warnIfSilenced(one) {
  setTimeout(() => {
    if (one === speech && one.silenced) complain("The browser keeps the sound off: allow this page to play audio, then speak again.");
  }, 2000);
}

// ---- hands

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  speak();
});
$("stop").addEventListener("click", stop);
$("speed").addEventListener("input", () => ($("speed-shown").textContent = `${Number($("speed").value)}×`));
document.addEventListener("keydown", (event) => {
  if ($("key-dialog").open || event.isComposing || event.repeat) return;
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    speak();
  } else if (event.key === "Escape") {
    stop();
  }
});
addEventListener("pagehide", stop);

learn();
