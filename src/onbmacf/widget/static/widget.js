// Shows the traits of a PersonWidget and sends what is pressed or typed. All values are set as text, never as markup.

const WAIT = 350; // milliseconds after the last key before values are sent

function make(tag, traits = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(traits)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

function verdict({ label, probability, reason }) {
  if (!label) return [`nothing: ${reason}`];
  const sure = probability ? [" ", make("span", { class: "soft" }, `with probability ${probability}`)] : [];
  return [make("span", { class: "verdict" }, label), ...sure];
}

function changes(plan) {
  return make("ul", { class: "changes" }, ...plan.changes.map((change) => make("li", {},
    make("span", { class: "feature" }, change.said),
    make("span", { class: "move" },
      make("span", { class: "unseen" }, "from "), `${change.before} `,
      make("span", { class: "arrow", "aria-hidden": "true" }, "→"), make("span", { class: "unseen" }, " to "), " ",
      make("strong", {}, change.after)),
    ...(change.range ? [make("span", { class: "works" }, `works: ${change.range}`)] : []))),
  ...plan.effects.map((effect) => make("li", {},
    make("span", { class: "feature" }, `${effect.said} `, make("span", { class: "note" }, "(follows)")),
    make("span", { class: "move" },
      make("span", { class: "unseen" }, "from "), `${effect.before} `,
      make("span", { class: "arrow", "aria-hidden": "true" }, "→"), make("span", { class: "unseen" }, " to "), " ",
      effect.after))));
}

function planCard(plan, keep) {
  return make("li", { class: "plan" },
    make("h5", {}, `Plan ${plan.number}`),
    make("p", { class: "to" }, "→ ", ...verdict(plan)),
    changes(plan),
    ...(plan.even_if ? [make("p", { class: "even" }, make("strong", {}, "Not enough. "), plan.even_if)] : []),
    make("p", { class: "how" }, plan.distance),
    make("p", { class: "how" }, plan.plausibility),
    make("div", { class: "buttons" }, ...plan.changes.map((change) =>
      make("button", { type: "button", class: "quiet", onclick: () => keep(change.feature, true) }, `Keep ${change.said}`))));
}

function plans(view, keep) {
  if (view.plans.length) return [make("ol", { class: "plans" }, ...view.plans.map((plan) => planCard(plan, keep)))];
  const needs = view.would_need.length
    ? [make("p", {}, "What stands in the way; without it there is a plan:"),
       make("ul", {}, ...view.would_need.map((need) => make("li", {}, need)))]
    : [];
  return [make("div", { class: "blocked" }, make("p", {}, view.reason), ...needs)];
}

function control(field, id) {
  if (field.is_number) {
    const traits = { type: field.input, id, value: field.value, step: field.step, "aria-describedby": `${id}-note` };
    return [make("input", traits), make("span", { class: "note", id: `${id}-note` }, `known: ${field.low} to ${field.high}${field.may_lack ? "; empty: unknown" : ""}`)];
  }
  const options = field.levels.map(([level, said]) => make("option", { value: level, selected: level === field.value }, said));
  if (field.may_lack) options.unshift(make("option", { value: "", selected: field.value === "" }, "unknown"));
  return [make("select", { id }, ...options)];
}

// A colour as red, green, blue and alpha from 0 to 255, in whatever form a style sheet writes it.
function drawn(colour) {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d");
  canvas.fillStyle = colour;
  canvas.fillRect(0, 0, 1, 1);
  return canvas.getImageData(0, 0, 1, 1).data;
}

// Whether an element stands on dark ground: that of the nearest around it that has one, also around a shadow root.
function isOnDark(element) {
  for (let one = element; one; one = one.parentNode || one.host) {
    if (one.nodeType !== Node.ELEMENT_NODE) continue;
    const [red, green, blue, alpha] = drawn(getComputedStyle(one).backgroundColor);
    if (alpha > 0) return 0.299 * red + 0.587 * green + 0.114 * blue < 128;
  }
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

// Notebooks have themes of their own, whatever the system prefers: a widget is dark where its surroundings are.
function followTheme(section) {
  const follow = () => setTimeout(() => (section.style.colorScheme = isOnDark(section.parentNode) ? "dark" : "light"), 50);
  const changes = new MutationObserver(follow); // of attributes, or of style sheets that arrive later
  for (const one of [document.documentElement, document.body]) changes.observe(one, { attributes: true });
  changes.observe(document.head, { childList: true });
  follow();
  return () => changes.disconnect();
}

let made = 0; // widgets on this page: ids must not repeat

function render({ model, el }) {
  const own = `onbmacf-${++made}`;
  const decision = make("p", { class: "decision" });
  const found = make("div", {});
  const heading = make("h4", { tabindex: "-1" });
  const fault = make("p", { class: "alert", role: "alert", hidden: true });
  const said = make("div", { "aria-live": "polite" });
  const first = model.get("view");

  function keep(name, isKept) {
    const others = model.get("locked").filter((one) => one !== name);
    model.set("locked", isKept ? [...others, name] : others);
    model.save_changes();
  }

  const boxes = first.fields.map((field) => make("input", { type: "checkbox", onchange: (event) => keep(field.name, event.target.checked) }));
  const kept = make("fieldset", { class: "keep" }, make("legend", {}, "Keep as it is"),
    ...first.fields.map((field, at) => make("label", {}, boxes[at], field.said)));

  const controls = first.fields.map((field, at) => control(field, `${own}-${at}`));
  const form = make("div", { class: "fields values" }, ...first.fields.map((field, at) =>
    make("p", { class: "field" }, make("label", { for: `${own}-${at}` }, field.said), ...controls[at])));
  let timer = 0;
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(send, WAIT);
  });
  function send() {
    const typed = first.fields.map((field, at) => [field.name, controls[at][0].value, field.value]);
    model.set("tried", Object.fromEntries(typed.filter(([, value, before]) => value !== before)));
    model.save_changes();
  }
  function startAgain() {
    first.fields.forEach((field, at) => (controls[at][0].value = field.value));
    send();
  }

  function showView() {
    const view = model.get("view");
    const hadFocus = found.contains(el.getRootNode().activeElement); // a front end may show it in a shadow root
    decision.replaceChildren("The model says ", ...verdict(view));
    heading.textContent = view.plans.length ? "What would change the decision" : "No plan";
    found.replaceChildren(...plans(view, keep));
    if (hadFocus) heading.focus();
  }
  function showLocked() {
    const locked = model.get("locked");
    first.fields.forEach((field, at) => (boxes[at].checked = locked.includes(field.name)));
  }
  function showAnswered() {
    const answered = model.get("answered");
    if (answered.label === undefined) return said.replaceChildren();
    const from = answered.plans.length
      ? [make("p", { class: "soft" }, "The nearest plan from there:"), changes(answered.plans[0])]
      : answered.label ? [make("p", { class: "soft" }, answered.reason)] : [];
    const outside = answered.outside.map((one) => make("p", { class: "soft" }, one));
    said.replaceChildren(...outside, make("p", { class: "decision" }, "The model would say ", ...verdict(answered)), ...from);
  }
  function showError() {
    fault.textContent = model.get("error");
    fault.hidden = !fault.textContent;
  }

  const again = make("button", { type: "button", class: "quiet", onclick: startAgain }, "Start again");
  const section = make("section", { class: "onbmacf-person", "aria-label": `Plans for ${first.title}` },
    make("h3", {}, first.title), decision, fault, heading, found, kept,
    make("h4", {}, "What if?"), form, make("p", { class: "buttons" }, again), said);
  el.append(section);
  const leaveTheme = followTheme(section);
  const shows = { view: showView, locked: showLocked, answered: showAnswered, error: showError };
  for (const [name, show] of Object.entries(shows)) {
    show();
    model.on(`change:${name}`, show);
  }
  return () => {
    leaveTheme();
    Object.entries(shows).forEach(([name, show]) => model.off(`change:${name}`, show));
  };
}

export default { render };
