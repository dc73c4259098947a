// Brings the page's forms to life. Python answers, in a worker that starts at the first touch;
// this script only carries text to it and shows what comes back.
(() => {
  "use strict";

  const PATIENCE = 60_000; // ms without a sign of life, from the worker or of its download
  const STORE = "tfbook:answered";
  const root = document.documentElement.dataset.content_root || "./";
  const forms = [...document.querySelectorAll("form.tfb-form[data-asks]")];

  // --- the runtime -------------------------------------------------------------------------

  const asleep = () => ({ worker: null, state: "asleep", reason: "", waiting: new Map(), tickets: 0, timer: 0 });
  let runtime = asleep();

  function startRuntime(form) {
    if (runtime.state === "off") return note(form, runtime.reason, true);
    if (runtime.state !== "asleep") return;
    if (location.protocol === "file:") {
      return stopRuntime(
        form,
        "This folder is open as files, and browsers start no Python from files. " +
          "Serve it (make serve, or python -m http.server in this folder) and the forms answer.",
      );
    }
    runtime.state = "starting";
    note(form, "Starting Python in your browser…");
    try {
      runtime.worker = new Worker(new URL(`${root}_live/worker.mjs`, location.href), { type: "module" });
    } catch (error) {
      return stopRuntime(form, unavailable(error.message));
    }
    runtime.worker.onerror = (event) => stopRuntime(form, unavailable(event.message || "its script did not load"));
    runtime.worker.onmessage = ({ data }) => {
      if (data.kind === "fatal") return stopRuntime(form, unavailable(data.reason));
      if (data.kind === "progress" && runtime.state === "starting") {
        note(form, `Starting Python in your browser… ${(data.received / 1e6).toFixed(1)} MB`);
      }
      if (data.kind === "ready") {
        runtime.state = "ready";
        note(form, "");
      }
      if (data.kind === "answer") {
        runtime.waiting.get(data.ticket)?.(data.response);
        runtime.waiting.delete(data.ticket);
      }
      beQuick(form);
    };
    beQuick(form);
  }

  // Whoever owes an answer has a minute for its next sign of life.
  function beQuick(form) {
    clearTimeout(runtime.timer);
    if (runtime.state === "starting" || runtime.waiting.size) {
      runtime.timer = setTimeout(() => stopRuntime(form, unavailable("no answer in a minute")), PATIENCE);
    }
  }

  const unavailable = (reason) =>
    `Python does not run here (${reason}), so the forms on this page cannot answer. ` +
    "Hints and worked answers below open all the same. ";

  function stopRuntime(form, reason) {
    clearTimeout(runtime.timer);
    runtime.worker?.terminate();
    runtime.state = "off";
    runtime.reason = reason;
    for (const settle of runtime.waiting.values()) settle(null);
    runtime.waiting.clear();
    enable(false);
    note(form, reason, true);
  }

  function enable(on) {
    for (const form of forms) {
      for (const button of form.querySelectorAll("button[type=submit]")) button.disabled = !on;
    }
  }

  function ask(form, request) {
    startRuntime(form);
    if (runtime.state === "off") return Promise.resolve(null);
    const ticket = ++runtime.tickets;
    const answer = new Promise((settle) => runtime.waiting.set(ticket, settle));
    runtime.worker.postMessage({ ticket, request: JSON.stringify(request) });
    beQuick(form);
    return answer;
  }

  // Each form says it when it is touched: one announcement at a time.
  function note(form, text, retry = false) {
    const line = form.querySelector(".tfb-note");
    if (line.dataset.said === text) return;
    line.dataset.said = text;
    line.textContent = text;
    line.hidden = !text;
    if (retry && location.protocol !== "file:") {
      const again = Object.assign(document.createElement("button"), { type: "button", textContent: "Try again" });
      again.onclick = () => {
        runtime = asleep();
        for (const other of forms) note(other, "");
        enable(true);
        startRuntime(form);
      };
      line.append(again);
    }
  }

  // --- one form ----------------------------------------------------------------------------

  function values(form) {
    const found = {};
    for (const input of form.querySelectorAll("[name]")) {
      if (input.type === "radio") found[input.name] ??= "";
      if (input.type === "radio" && input.checked) found[input.name] = input.value;
      if (input.type === "checkbox" && input.closest("[data-many=true]")) {
        found[input.name] ??= [];
        if (input.checked) found[input.name].push(input.value);
      } else if (input.type === "checkbox") found[input.name] = input.checked;
      if (["text", "textarea", "select-one", "hidden"].includes(input.type)) found[input.name] = input.value;
    }
    return found;
  }

  function enliven(form) {
    const { name, arguments: known, seed } = JSON.parse(form.dataset.asks);
    const result = form.querySelector(".tfb-result");
    let asking = false;
    let again = false;

    async function answer() {
      if (asking) {
        again = true; // only the latest state of the form is worth an answer
        return;
      }
      asking = true;
      do {
        again = false;
        form.classList.add("tfb-busy");
        const response = await ask(form, { name, arguments: { ...known, values: { ...values(form), seed } } });
        if (response && !again) show(response);
      } while (again);
      form.classList.remove("tfb-busy");
      asking = false;
    }

    function show({ html, status }) {
      result.innerHTML = html; // made by the book's Python, which escapes what was typed
      form.dataset.status = status;
      if (window.MathJax?.typesetPromise) {
        window.MathJax.typesetClear?.([result]);
        window.MathJax.typesetPromise([result]);
      }
      if (name === "exercise" && status === "correct") remember(known.id);
      form.dispatchEvent(new CustomEvent("tfb-answered", { bubbles: true, detail: { id: known.id, status } }));
    }

    for (const wake of ["focusin", "pointerdown", "input"]) {
      form.addEventListener(wake, ({ target }) => target.closest("button[type=button], details") || startRuntime(form));
    }
    for (const list of form.querySelectorAll(".tfb-order")) sortable(list);
    const redraw = form.querySelector(".tfb-redraw");
    if (redraw) {
      redraw.hidden = false;
      redraw.onclick = async () => {
        const next = { name: "redraw", arguments: { ...known, values: { seed: (seed ?? 0) + 1 } } };
        const response = await ask(form, next);
        if (response) replaceForm(form, response.html);
      };
    }
    const restored = restore(form);
    const follow = form.dataset.live === "true" ? linkToState(form) : () => {};
    if (restored && form.dataset.live === "true") answer();
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (form.dataset.live === "false") answer();
    });
    form.addEventListener("input", ({ target }) => {
      couple(target);
      follow();
      if (form.dataset.live === "true") answer();
      else if (form.dataset.status) {
        delete form.dataset.status; // the verdict was on another answer
        result.textContent = "";
      }
    });
  }

  // Another exercise takes a form's place: the same HTML that a page is built with.
  function replaceForm(form, html) {
    const box = Object.assign(document.createElement("div"), { innerHTML: html });
    const fresh = box.querySelector("form");
    form.replaceWith(fresh);
    forms.splice(forms.indexOf(form), 1, fresh);
    welcome(fresh);
    fresh.querySelector("input, select")?.focus();
  }

  function welcome(form) {
    enliven(form);
    note(form, runtime.state === "off" ? runtime.reason : "");
    for (const button of form.querySelectorAll("button[type=submit]")) button.disabled = runtime.state === "off";
    if (window.MathJax?.typesetPromise) window.MathJax.typesetPromise([form]);
    showProgress(answered());
  }

  // A list whose items move by buttons or by dragging; the hidden input tells their order.
  function sortable(box) {
    const list = box.querySelector("ol");
    const told = box.querySelector("input");
    const follow = () => {
      told.value = [...list.children].map((item) => item.dataset.key).join(", ");
      told.dispatchEvent(new Event("input", { bubbles: true }));
    };
    list.addEventListener("click", ({ target }) => {
      const step = Number(target.dataset.move || 0);
      const item = target.closest("li");
      const other = step < 0 ? item?.previousElementSibling : item?.nextElementSibling;
      if (!step || !other) return;
      if (step < 0) other.before(item);
      else other.after(item);
      target.focus();
      follow();
    });
    let dragged = null;
    list.addEventListener("dragstart", ({ target }) => (dragged = target.closest("li")));
    list.addEventListener("dragover", (event) => {
      const over = event.target.closest("li");
      if (!dragged || !over || over === dragged) return;
      event.preventDefault();
      const { top, height } = over.getBoundingClientRect();
      if (event.clientY < top + height / 2) over.before(dragged);
      else over.after(dragged);
    });
    list.addEventListener("dragend", () => {
      dragged = null;
      follow();
    });
  }

  // --- a link that brings a form's values back: ?form-id.field=value#form-id ------------------

  function linkToState(form) {
    const link = Object.assign(document.createElement("a"), { textContent: "Link to these values" });
    const place = Object.assign(document.createElement("p"), { className: "tfb-link" });
    place.append(link);
    form.append(place);
    const follow = () => {
      const changed = new URLSearchParams();
      for (const input of form.querySelectorAll("[name]")) {
        const value = input.type === "checkbox" ? String(input.checked) : input.value;
        if (value !== firstValue(input)) changed.set(`${form.id}.${input.name}`, value);
      }
      link.href = `${location.pathname}${changed.size ? `?${changed}` : ""}#${form.id}`;
    };
    follow();
    return follow;
  }

  function firstValue(input) {
    if (input.type === "checkbox") return String(input.defaultChecked);
    if (input.type === "select-one") return [...input.options].find((option) => option.defaultSelected)?.value ?? "";
    return input.defaultValue;
  }

  function restore(form) {
    let found = false;
    for (const [key, value] of new URLSearchParams(location.search)) {
      const input = [...form.querySelectorAll("[name]")].find(({ name }) => key === `${form.id}.${name}`);
      if (!input) continue;
      found = true;
      if (input.type === "checkbox") input.checked = value === "true";
      else input.value = value;
      couple(input);
      input.closest("details")?.setAttribute("open", "");
      form.scrollIntoView();
    }
    return found;
  }

  // A slider runs over the indices of its stops; the box beside it holds the value that counts.
  function couple(input) {
    const pair = input.closest(".tfb-slider");
    if (!pair) return;
    const [slider, box] = pair.querySelectorAll("input");
    const stops = JSON.parse(slider.dataset.stops);
    if (input === slider) box.value = stops[slider.value];
    else {
      const typed = Number(box.value.replace(/[,_\s]/g, ""));
      const distance = (stop) => Math.abs(stop - typed);
      if (box.value.trim() && Number.isFinite(typed)) {
        slider.value = stops.indexOf(stops.reduce((a, b) => (distance(b) < distance(a) ? b : a)));
      }
    }
    slider.setAttribute("aria-valuetext", box.value);
  }

  // --- a mixed test: forms that Python draws, a clock, and the first verdicts ------------------

  function prepareTest(box) {
    const [start, finish] = [box.querySelector(".tfb-start"), box.querySelector(".tfb-finish")];
    const [clock, place, score] = [".tfb-clock", ".tfb-questions", ".tfb-score"].map((name) => box.querySelector(name));
    const first = new Map();
    let ticking = 0;
    note(box, "");
    start.hidden = false;
    box.addEventListener("tfb-answered", ({ target, detail }) => {
      if (!["correct", "wrong"].includes(detail.status) || first.has(detail.id)) return;
      first.set(detail.id, [target.closest("[data-section]").dataset.section, detail.status === "correct"]);
    });
    start.onclick = async () => {
      const seed = crypto.getRandomValues(new Uint32Array(1))[0];
      const response = await ask(box, { name: "test", arguments: { id: "mixed", values: { seed } } });
      if (!response) return;
      first.clear();
      score.textContent = "";
      place.innerHTML = response.html;
      for (const form of place.querySelectorAll("form")) {
        forms.push(form);
        welcome(form);
      }
      start.textContent = "Start another test";
      finish.hidden = false;
      place.querySelector("input, select")?.focus();
      const end = Date.now() + 60_000 * Number(box.dataset.minutes);
      clearInterval(ticking);
      const tick = () => {
        const left = Math.max(0, Math.round((end - Date.now()) / 1000));
        clock.textContent = left ? `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")} left` : "Time is up. Finish when you like.";
        if (!left) clearInterval(ticking);
      };
      ticking = setInterval(tick, 1000);
      tick();
    };
    finish.onclick = async () => {
      clearInterval(ticking);
      const answers = [...place.querySelectorAll("[data-section]")].map((part) => {
        const { arguments: known } = JSON.parse(part.querySelector("form").dataset.asks);
        return first.get(known.id) ?? [part.dataset.section, false];
      });
      const response = await ask(box, { name: "score", arguments: { id: "mixed", values: { answers } } });
      if (response) score.innerHTML = response.html;
      score.scrollIntoView({ block: "nearest" });
    };
  }

  // --- progress, kept in this browser alone ------------------------------------------------

  let fallback = new Set(); // for a browser that keeps no storage: progress until the page is left

  function answered() {
    try {
      const list = JSON.parse(localStorage.getItem(STORE) || "[]");
      return new Set(Array.isArray(list) ? list : []);
    } catch {
      return fallback; // storage is off, or holds something else
    }
  }

  function store(ids) {
    fallback = ids;
    try {
      localStorage.setItem(STORE, JSON.stringify([...ids].sort()));
    } catch {
      // Storage is off or full: `fallback` holds the progress of this visit.
    }
    showProgress(ids);
  }

  const remember = (id) => store(answered().add(id));

  function showProgress(ids) {
    for (const form of forms) {
      const { name, arguments: known } = JSON.parse(form.dataset.asks);
      if (name !== "exercise") continue;
      const done = ids.has(known.id);
      form.classList.toggle("tfb-done", done);
      form.querySelector(".tfb-mark").textContent = done ? " ✓ answered" : "";
    }
    const all = JSON.parse(document.getElementById("tfb-exercises")?.textContent || "{}");
    for (const place of document.querySelectorAll("[data-tfb-progress]")) {
      const section = place.dataset.tfbProgress;
      const list = section ? all[section] || [] : Object.values(all).flat();
      const done = list.filter((id) => ids.has(id)).length;
      const where = section ? "in this section" : "in the book";
      place.textContent = `${done} of ${list.length} self-tests answered ${where}. `;
      if (!section) place.append(bySection(all, ids));
      if (done) place.append(button("Start over", () => store(new Set([...answered()].filter((id) => !list.includes(id))))));
      if (!section) place.append(" ", button("Save to a file", saveProgress), " ", fileChooser());
    }
  }

  const button = (text, onclick) => Object.assign(document.createElement("button"), { type: "button", textContent: text, onclick });

  function bySection(all, ids) {
    const list = document.createElement("ul");
    for (const [section, known] of Object.entries(all)) {
      const text = `${section}: ${known.filter((id) => ids.has(id)).length} of ${known.length}`;
      list.append(Object.assign(document.createElement("li"), { textContent: text }));
    }
    return list;
  }

  // Progress as a file: to carry it to another browser, or to hand it in. Nothing is sent anywhere.
  function saveProgress() {
    const text = JSON.stringify({ format: "tfbook-progress-1", answered: [...answered()].sort() }, null, 1);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "tfbook-progress.json";
    link.click();
    URL.revokeObjectURL(link.href);
  }

  function fileChooser() {
    const label = Object.assign(document.createElement("label"), { className: "tfb-load", textContent: "Load a file " });
    const input = Object.assign(document.createElement("input"), { type: "file", accept: ".json,application/json" });
    const said = Object.assign(document.createElement("span"), { className: "tfb-note" });
    said.setAttribute("role", "status");
    input.onchange = async () => {
      const file = input.files[0];
      if (!file) return;
      const found = file.size < 1_000_000 ? readProgress(await file.text()) : null;
      if (found) store(new Set([...answered(), ...found]));
      else said.textContent = " This is no progress file of the book; choose a tfbook-progress.json.";
    };
    label.append(input, said);
    return label;
  }

  function readProgress(text) {
    try {
      const { format, answered: found } = JSON.parse(text);
      const fits = format === "tfbook-progress-1" && Array.isArray(found) && found.every((id) => typeof id === "string");
      return fits ? found : null;
    } catch {
      return null; // no JSON, or none of ours
    }
  }

  // --- start -------------------------------------------------------------------------------

  function begin() {
    for (const form of forms) {
      enliven(form);
      note(form, "");
    }
    for (const box of document.querySelectorAll(".tfb-test")) prepareTest(box);
    enable(true);
    showProgress(answered());
    addEventListener("storage", () => showProgress(answered())); // another tab answered something
    const colab = document.querySelector('a[href^="https://colab.research.google.com/"]');
    for (const place of document.querySelectorAll("[data-launch]")) {
      if (colab) place.append(Object.assign(document.createElement("a"), { href: colab.href, textContent: "Open in Colab" }));
      else place.textContent = "Open this chapter's notebook with Jupyter from the book's folder.";
    }
  }
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
