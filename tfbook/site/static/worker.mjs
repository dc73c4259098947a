// Runs the book's Python in the reader's browser. One message in, one message out; no formula here.
import { loadPyodide } from "./pyodide/pyodide.mjs";

// loadPyodide never settles when one of its files is missing, so every fetch is watched; what
// arrives is counted, so that a slow line can be told from a dead one.
const plainFetch = self.fetch.bind(self);
let received = 0;
self.fetch = async (...request) => {
  try {
    const response = await plainFetch(...request);
    if (!response.ok) fail(`${response.status} for ${response.url.split("/").pop()}`);
    const counter = new TransformStream({
      transform(chunk, controller) {
        received += chunk.byteLength;
        self.postMessage({ kind: "progress", received });
        controller.enqueue(chunk);
      },
    });
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(counter), { status, statusText, headers });
  } catch (error) {
    fail(error.message);
    throw error;
  }
};

function fail(reason) {
  self.postMessage({ kind: "fatal", reason });
}

async function start() {
  const python = await loadPyodide();
  const archive = await fetch(new URL("./tfbook.zip", import.meta.url));
  python.unpackArchive(await archive.arrayBuffer(), "zip", { extractDir: "/book" });
  return python.runPython("import sys; sys.path.insert(0, '/book')\nfrom tfbook.interactive import call\ncall");
}

const started = start();
started.then(
  () => self.postMessage({ kind: "ready" }),
  (error) => fail(error.message),
);

self.onmessage = async ({ data }) => {
  try {
    const call = await started;
    self.postMessage({ kind: "answer", ticket: data.ticket, response: JSON.parse(call(data.request)) });
  } catch (error) {
    fail(error.message); // a fault of the book, not of the reader: say so rather than hang
  }
};
