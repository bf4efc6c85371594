// Makes the pages smoother: forms are sent without leaving the page, and the parts that changed are swapped in.
// Everything works without it.
"use strict";

const WAIT = 350; // milliseconds after the last key before a live form is sent
let running = null;

async function swap(address, options, says) {
  if (running) running.abort();
  const own = (running = new AbortController());
  document.body.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(address, { ...options, signal: own.signal });
    if (!(response.headers.get("content-type") || "").startsWith("text/html")) throw new Error("no page");
    put(new DOMParser().parseFromString(await response.text(), "text/html"));
    if (options.method !== "POST") history.replaceState(null, "", response.url);
    say(response.ok ? says : document.querySelector("[role=alert]")?.textContent);
  } catch (error) {
    if (error.name !== "AbortError") say("The service did not answer. Reload the page.");
  } finally {
    if (running === own) {
      running = null;
      document.body.removeAttribute("aria-busy");
      load();
    }
  }
}

function put(page) {
  const focused = document.activeElement;
  const key = focused && [focused.name, focused.value, focused.textContent];
  for (const old of document.querySelectorAll("[data-part]")) {
    const fresh = page.getElementById(old.id);
    if (fresh) old.replaceWith(document.adoptNode(fresh));
  }
  if (focused && !focused.isConnected) refocus(key);
}

function refocus([name, value, text]) {
  const alike = [...document.querySelectorAll("button, input, select, a")].filter((one) => one.name === name);
  const same = alike.find((one) => one.value === value && one.textContent === text);
  const place = same || document.querySelector("#plans h2, #main h1");
  if (!same) place?.setAttribute("tabindex", "-1");
  place?.focus();
}

function say(words) {
  document.getElementById("said").textContent = words || "";
}

// Parts that take longer are asked for once the page is there.
function load() {
  const part = document.querySelector("[data-load]");
  if (!part || running) return;
  const address = part.dataset.load;
  delete part.dataset.load;
  const wait = Number(part.dataset.wait || 0);
  setTimeout(() => (running ? (part.dataset.load = address) : swap(address, { method: "GET" }, "")), wait);
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.hasAttribute("data-swap") || event.submitter?.hasAttribute("data-plain")) return;
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(form));
  if (event.submitter?.name) fields.set(event.submitter.name, event.submitter.value);
  if (form.method === "get") return void swap(`${form.getAttribute("action")}?${fields}`, { method: "GET" }, "");
  swap(form.getAttribute("action"), { method: "POST", body: fields }, form.dataset.says);
});

let timer = 0;
document.addEventListener("input", (event) => {
  const output = event.target.parentElement?.querySelector("output");
  if (output) output.textContent = event.target.value;
  const form = event.target.form;
  if (!form?.hasAttribute("data-live")) return;
  clearTimeout(timer);
  timer = setTimeout(() => form.checkValidity() && form.requestSubmit(), WAIT);
});

load();
