// Requests to the server that this page came from. The key lives in sessionStorage and nowhere else.

const KEY = "ouzel-api-key";

export const key = {
  get: () => sessionStorage.getItem(KEY),
  set: (value) => sessionStorage.setItem(KEY, value),
  forget: () => sessionStorage.removeItem(KEY),
};

/** An answer that is an error, as a sentence. retryAfterS: when the server said so. */
export class Problem extends Error {
  constructor(message, status = 0, retryAfterS = null) {
    super(message);
    this.status = status;
    this.retryAfterS = retryAfterS;
  }
}

/** path: relative to the page, which may be mounted anywhere. Throws Problem; AbortError when the signal says so. */
export async function ask(path, { body, signal } = {}) {
  const headers = {};
  if (key.get() !== null) headers.authorization = `Bearer ${key.get()}`;
  if (body) headers["content-type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server does not answer; it may have been stopped.");
  }
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}

async function problemOf(answer) {
  let message = `The server answered with status ${answer.status}.`;
  try {
    message = (await answer.json()).error.message || message;
  } catch {
    // Not one of the server's own errors: something between it and the page.
  }
  return new Problem(message, answer.status, Number(answer.headers.get("retry-after")) || null);
}
