// Makes the pages smoother: forms are sent without leaving the page, and the parts that changed are swapped in.
// Everything works without it.
"use strict";

const NOBODY = "The service did not answer.";
const WAIT = 350; // milliseconds after the last key before a live form is sent
let running = null;
const waiting = []; // requests that are sent one after the other: the answer of each is shown

function ask(request) {
  if (running && (running.isLoad || (request.isLive && running.form === request.form))) running.controller.abort();
  for (let at = waiting.length; at--; ) {
    if (request.isLive && waiting[at].form === request.form) waiting.splice(at, 1); // newer words of the same form
  }
  waiting.push(request);
  next();
}

async function next() {
  if (running) return;
  const request = (running = waiting.shift() || null);
  document.body.toggleAttribute("aria-busy", Boolean(request));
  if (!request) return load();
  request.controller = new AbortController();
  document.querySelectorAll(".failed").forEach((one) => one.remove());
  try {
    const response = await fetch(request.address, { ...request.options, signal: request.controller.signal });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (!page.querySelector("#main [data-part]")) throw new Error(words(page, response));
    put(page);
    if (request.options.method !== "POST") history.replaceState(null, "", response.url);
    say(response.ok ? request.says : document.querySelector("[role=alert]")?.textContent);
    if (request.shows) document.getElementById(request.shows)?.focus(); // what was asked for is elsewhere
  } catch (error) {
    if (error.name !== "AbortError") fail(request, error.name === "TypeError" ? NOBODY : error.message);
  }
  running = null;
  next();
}

function words(page, response) {
  const said = [page.querySelector("main h1"), page.querySelector("main p")].map((one) => one?.textContent.trim());
  return said.filter(Boolean).join(": ") || `${NOBODY} (${response.status})`;
}

// Without an answer, what is on the page answers something else. It goes, and the reason is in its place.
function fail(request, reason) {
  const place = document.getElementById(request.answer || request.place) || document.getElementById("main");
  const told = document.createElement("p");
  told.className = "alert failed";
  told.setAttribute("role", "alert");
  const again = document.createElement("a");
  [again.href, again.textContent] = [location.href.split("#")[0], "Reload the page"];
  told.append(`${reason} `, again, ".");
  if (!request.answer) return void place.prepend(told);
  const head = place.querySelector("h2");
  if (head) head.textContent = "No answer";
  place.replaceChildren(...(head ? [head] : []), told);
  if (request.answer === "plans") ["what-if-said", "pictures"].forEach((id) => document.getElementById(id)?.replaceChildren());
  head?.focus();
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
  const request = { address, options: { method: "GET" }, isLoad: true, place: part.id };
  setTimeout(() => (running ? (part.dataset.load = address) : ask(request)), wait);
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.hasAttribute("data-swap") || event.submitter?.hasAttribute("data-plain")) return;
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(form));
  if (event.submitter?.name) fields.set(event.submitter.name, event.submitter.value);
  const isGet = form.method === "get";
  const { says, shows, answer } = form.dataset;
  ask({
    address: isGet ? `${form.getAttribute("action")}?${fields}` : form.getAttribute("action"),
    options: isGet ? { method: "GET" } : { method: "POST", body: fields },
    isLive: isGet || form.hasAttribute("data-live"),
    place: form.closest("[data-part]")?.id,
    ...{ form: form.getAttribute("action"), says, shows, answer },
  });
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
