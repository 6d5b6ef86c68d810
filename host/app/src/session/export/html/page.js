"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;
  const tip = $("tip");
  document.querySelector(".tools").hidden = false;

  // The receipt of the call that the pointer or the focus is on.
  let shown = null;
  const show = (summary, x) => {
    const receipt = summary.parentElement.querySelector(".receipt");
    if (!receipt || summary.parentElement.open) return hide();
    shown = summary;
    tip.textContent = receipt.textContent;
    if (!tip.matches(":popover-open")) tip.showPopover();
    const row = summary.getBoundingClientRect();
    const { width, height } = tip.getBoundingClientRect();
    const below = row.bottom + 6;
    const top = below + height > innerHeight ? Math.max(6, row.top - height - 6) : below;
    tip.style.top = `${top}px`;
    tip.style.left = `${Math.max(8, Math.min(x - width / 2, innerWidth - width - 12))}px`;
  };
  const hide = () => {
    shown = null;
    if (tip.matches(":popover-open")) tip.hidePopover();
  };
  const inFocus = (summary) => show(summary, summary.getBoundingClientRect().left + innerWidth / 3);
  const row = (event) => event.target.closest?.(".call > summary");
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "touch") return;
    const summary = row(event);
    if (summary) show(summary, event.clientX); else hide();
  });
  document.addEventListener("focusin", (event) => {
    const summary = row(event);
    if (summary?.matches(":focus-visible")) inFocus(summary); else hide();
  });
  // The receipt is a popover, which says so when it opens as well.
  document.addEventListener("toggle", (event) => { if (event.target !== tip) hide(); }, true);
  // To move the focus scrolls: its receipt goes along, one under the pointer does not.
  addEventListener("scroll", () => {
    if (shown && shown === document.activeElement) inFocus(shown); else hide();
  }, { passive: true });

  // From one message or call to the next, and from one problem to the next.
  const here = () => document.activeElement.closest?.(".call, .msg")
    ?? document.elementFromPoint(innerWidth / 2, 90)?.closest?.(".call, .msg");
  const go = (selector, back) => {
    const all = [...document.querySelectorAll(selector)];
    const from = here();
    let at = all.indexOf(from);
    if (at < 0) {
      // Between two of them, or before the first.
      const after = (step) => !from || from.compareDocumentPosition(step) & Node.DOCUMENT_POSITION_FOLLOWING;
      const next = all.findIndex(after);
      at = next < 0 ? all.length - 0.5 : next - 0.5;
    }
    const next = all[back ? Math.ceil(at) - 1 : Math.floor(at) + 1];
    if (!next) return;
    const focus = next.querySelector(":scope > summary") ?? next;
    focus.focus({ preventScroll: true, focusVisible: true });
    focus.scrollIntoView({ block: "nearest" });
  };
  const STEPS = ".msg, .call";
  const BAD = ".call:not(.done), .msg.failed";
  const step = (back) => go(document.body.matches(".only-problems") ? `.msg.user, ${BAD}` : STEPS, back);
  // A link to a call opens it.
  const linked = () => {
    const call = $(location.hash.slice(1));
    if (call?.matches(".call")) call.open = true;
  };
  addEventListener("hashchange", linked);
  linked();

  const pressed = (button, on) => {
    button.setAttribute("aria-pressed", on);
    return on;
  };
  const flip = (button) => pressed(button, button.getAttribute("aria-pressed") !== "true");
  const problems = () => document.body.classList.toggle("only-problems", flip($("problems")));
  const unfold = () => {
    const open = flip($("unfold"));
    for (const call of document.querySelectorAll(".call")) call.open = open;
  };
  const theme = () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  };
  const help = () => { if (!$("keys").open) $("keys").showModal(); };
  $("problems").addEventListener("click", problems);
  $("unfold").addEventListener("click", unfold);
  $("theme").addEventListener("click", theme);
  $("help").addEventListener("click", help);

  const keys = {
    j: () => step(false), k: () => step(true),
    n: () => go(BAD, false), p: () => go(BAD, true),
    o: unfold, f: problems, t: theme, "?": help,
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
})();
