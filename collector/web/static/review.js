// Keys for the review pages. Everything here is also there as links and forms: without scripts nothing is missing.
(() => {
  "use strict";
  const all = (what, root = document) => [...root.querySelectorAll(what)];
  const one = (what, root = document) => root.querySelector(what);
  const items = [...all("[data-metric]"), ...all("[data-item]:not([data-metric])")];
  const form = document.getElementById("label");

  // Who dictates, or uses a switch, may turn single keys off; the choice is kept in this browser.
  const box = document.getElementById("keys-on");
  const off = () => box !== null && !box.checked;
  if (box) {
    try { box.checked = localStorage.getItem("groundwatch-keys") !== "off"; } catch { /* not allowed: on */ }
    box.closest("label").hidden = false;
    box.addEventListener("change", () => {
      try { localStorage.setItem("groundwatch-keys", box.checked ? "on" : "off"); } catch { /* not kept */ }
    });
  }

  const current = () => document.activeElement && document.activeElement.closest("[data-item]");

  function move(step) {
    if (!items.length) return;
    const at = items.indexOf(current());
    const to = at < 0 ? (step > 0 ? 0 : items.length - 1) : Math.min(items.length - 1, Math.max(0, at + step));
    const closed = items[to].closest("details:not([open])");
    if (closed) closed.open = true;
    items[to].focus();
    items[to].scrollIntoView({ block: "nearest" });
  }

  // A second press takes a choice back; the radio keeps no focus, so that the next key means the same part.
  function press(key) {
    const here = current();
    const where = here && one(`[data-key="${key}"]`, here) ? here : one(`[data-metric]:has([data-key="${key}"])`);
    const input = where && one(`[data-key="${key}"]`, where);
    if (!input) return false;
    input.checked = !input.checked;
    where.focus();
    return true;
  }

  function goTo(key) {
    const here = current();
    const field = (here && one(`[data-key-focus="${key}"]`, here)) || one(`[data-key-focus="${key}"]`);
    if (field) { field.focus(); return true; }
    if (key === "/") { location.href = "/review/search"; return true; }
    return false;
  }

  function submit(button) {
    if (form && button) form.requestSubmit(button);
  }

  document.addEventListener("keydown", (event) => {
    const target = event.target;
    const typing = target.matches("textarea, select, input:not([type=radio]):not([type=checkbox])");
    if (event.key === "Escape" && typing) {
      (target.closest("[data-item]") || document.getElementById("main")).focus();
      target.blur();
      return;
    }
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && form) {
      event.preventDefault();
      submit(one("[data-save]"));
      return;
    }
    if (off()) return;
    if (typing || event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.repeat) return;
    const link = target.closest("a, button, summary");
    let done = true;
    switch (event.key) {
      case "j": move(1); break;
      case "k": move(-1); break;
      case "Enter":
        if (link) return;
        if (form) submit(one("[data-save]"));
        else if (one("[data-start]")) one("[data-start]").click();
        else done = false;
        break;
      case "x": submit(one("[data-skip]")); break;
      case "u": { const undo = one("[data-undo]"); if (undo) undo.requestSubmit(); break; }
      case "n": { const next = one("[data-next]"); if (next) next.click(); break; }
      case "g": { const golden = one("[data-key-always='g']"); if (golden) golden.checked = !golden.checked; break; }
      case "?": { const keys = document.getElementById("keys"); if (keys) { keys.open = !keys.open; one("summary", keys).focus(); } break; }
      default: done = /^[a-z0-9/]$/.test(event.key) && (press(event.key) || goTo(event.key));
    }
    if (done) event.preventDefault();
  });

  const dirty = () => form && [...form.elements].some((field) =>
    field.type === "radio" || field.type === "checkbox" ? field.checked !== field.defaultChecked
      : field.type !== "hidden" && "defaultValue" in field && field.value !== field.defaultValue);
  let sending = false;
  document.addEventListener("submit", () => { sending = true; });
  window.addEventListener("beforeunload", (event) => { if (!sending && dirty()) event.preventDefault(); });
})();
