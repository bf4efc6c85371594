// Makes the pages smoother: forms are sent without leaving the page, and the parts that changed are swapped in.
// Everything works without it.
"use strict";

const WAIT = 350; // milliseconds after the last key before a live form is sent
let running = null;

async function swap(address, options, says, shows) {
  if (running) running.abort();
  const controller = (running = new AbortController());
  document.body.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(address, { ...options, signal: controller.signal });
    if (!(response.headers.get("content-type") || "").startsWith("text/html")) throw new Error("no page");
    put(new DOMParser().parseFromString(await response.text(), "text/html"));
    if (options.method !== "POST") history.replaceState(null, "", response.url);
    say(response.ok ? says : document.querySelector("[role=alert]")?.textContent);
    if (shows) document.querySelector(response.ok ? `#${shows}` : "#main h1").focus(); // what was asked for is elsewhere
  } catch (error) {
    if (error.name !== "AbortError") say("The service did not answer. Reload the page.");
  } finally {
    if (running === controller) {
      running = null;
      document.body.removeAttribute("aria-busy");
      load();
    }
  }
}

// The parts of the page become those of a fresh one. What is the same in both stays the very same element: whoever is
// on the way through the page keeps the focus, what is open, and what is typed but not sent.
function put(page) {
  const focused = document.activeElement;
  for (const old of document.querySelectorAll("[data-part]")) {
    const fresh = page.getElementById(old.id);
    if (fresh) follow(old, fresh);
  }
  for (const output of document.querySelectorAll("output[for]")) {
    output.textContent = document.getElementById(output.htmlFor.value).value;
  }
  if (!focused.isConnected) (document.querySelector("#plans h2") || document.querySelector("#main h1"))?.focus();
}

function follow(old, fresh) {
  const typed = isTyped(old) ? old.value : null;
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && name !== "open") old.setAttribute(name, value);
  }
  followChildren(old, fresh);
  if (!old.matches("input, select")) return;
  if (typed === null) [old.value, old.checked] = [fresh.value, fresh.checked];
  else old.value = typed;
}

function followChildren(old, fresh) {
  let next = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const kept = sameFrom(next, child);
    if (!kept) {
      old.insertBefore(document.adoptNode(child), next);
      continue;
    }
    for (; next !== kept; next = removed(next));
    next = kept.nextSibling;
    if (kept.nodeType === Node.ELEMENT_NODE) follow(kept, child);
    else kept.data = child.data;
  }
  while (next) next = removed(next);
}

function sameFrom(next, child) {
  if (child.nodeType !== Node.ELEMENT_NODE) return next?.nodeType === child.nodeType ? next : null;
  for (; next && key(next) !== key(child); next = next.nextSibling);
  return next;
}

function removed(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}

// What makes two elements the same. A button that does something else is another one: who has just pressed the old
// one must not find the new one under the same key.
function key(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return "";
  const does = { A: node.getAttribute("href"), BUTTON: node.value, FORM: node.querySelector?.("button")?.value };
  return [node.nodeName, node.id, node.getAttribute("name"), node.getAttribute("action"), does[node.nodeName]].join(" ");
}

function isTyped(control) {
  if (control.nodeName === "SELECT") {
    const first = [...control.options].find((one) => one.defaultSelected) || control.options[0];
    return control.selectedOptions[0] !== first;
  }
  if (control.nodeName !== "INPUT") return false;
  return control.value !== control.defaultValue || control.checked !== control.defaultChecked;
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
  swap(form.getAttribute("action"), { method: "POST", body: fields }, form.dataset.says, form.dataset.shows);
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
