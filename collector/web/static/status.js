// Renews the status page where it stands: only what changed is changed, so that the reader keeps his place, his focus
// and what he marked. Without scripts the link "refresh" does the same by hand.
(() => {
  "use strict";
  const milliseconds = Number(document.getElementById("main").dataset.renew) * 1000;
  const refresh = document.getElementById("refresh");
  const pause = document.getElementById("pause");
  const told = document.getElementById("renewal");
  const KEPT = "groundwatch-renewing";
  let paused = false;
  let busy = false;
  try { paused = localStorage.getItem(KEPT) === "off"; } catch { /* not allowed: it renews */ }

  const live = (root) => [...root.querySelectorAll("[data-live]")];
  const key = (node) => node.nodeType === Node.ELEMENT_NODE
    ? node.dataset.key || node.getAttribute("aria-labelledby") : null;

  function become(mine, theirs) {
    if (mine.isEqualNode(theirs)) return;
    if (mine.nodeName !== theirs.nodeName) { mine.replaceWith(theirs); return; }
    if (mine.nodeType !== Node.ELEMENT_NODE) { mine.data = theirs.data; return; }
    for (const { name } of [...mine.attributes]) if (!theirs.hasAttribute(name)) mine.removeAttribute(name);
    for (const { name, value } of theirs.attributes) if (mine.getAttribute(name) !== value) mine.setAttribute(name, value);
    within(mine, theirs);
  }

  // Children with a key stay what they are wherever they stand; all others are taken in their order.
  function within(mine, theirs) {
    const keys = new Set([...theirs.childNodes].map(key));
    const known = new Map();
    for (const child of [...mine.childNodes]) {
      if (!key(child)) continue;
      if (keys.has(key(child))) known.set(key(child), child); else child.remove();
    }
    let at = mine.firstChild;
    for (const child of [...theirs.childNodes]) {
      const ours = key(child) ? known.get(key(child)) : at && !key(at) ? at : null;
      if (ours) known.delete(key(child));
      if (ours && ours !== at) mine.insertBefore(ours, at);
      if (!ours) { mine.insertBefore(child, at); continue; }
      at = ours.nextSibling;
      become(ours, child);
    }
    while (at) { const next = at.nextSibling; at.remove(); at = next; }
  }

  const marking = () => { const marked = getSelection(); return marked && !marked.isCollapsed; };

  async function renew() {
    if (busy) return;
    busy = true;
    try {
      const reply = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (!reply.ok) throw new Error(`it answers ${reply.status}`);
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const fresh = new Map(live(page).map((one) => [one.dataset.live, one]));
      if (!fresh.has("main")) throw new Error("it answers with another page");
      const focused = document.activeElement;
      for (const one of live(document)) if (fresh.has(one.dataset.live)) become(one, fresh.get(one.dataset.live));
      if (focused.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
      say("");
    } catch (error) {
      const why = error instanceof TypeError || error.name === "TimeoutError" ? "it does not answer" : error.message;
      say(`not renewed: ${why}; what you see is older`);
    } finally {
      busy = false;
    }
  }

  function say(text) { if (told.textContent !== text) told.textContent = text; }
  function show() { pause.textContent = paused ? "renew by itself" : "stop renewing"; }

  pause.addEventListener("click", () => {
    paused = !paused;
    try { localStorage.setItem(KEPT, paused ? "off" : "on"); } catch { /* not kept */ }
    show();
    if (!paused) renew();
  });
  refresh.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    renew();
  });
  show();
  pause.hidden = false;
  setInterval(() => { if (!paused && !document.hidden && !marking()) renew(); }, milliseconds);
  document.addEventListener("visibilitychange", () => { if (!paused && !document.hidden) renew(); });
})();
