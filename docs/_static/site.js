"use strict";
// The viewers follow the theme of the page around them.
(() => {
  function theme() {
    const choice = document.body.dataset.theme;
    if (choice === "light" || choice === "dark") return choice;
    return window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }

  function tell(frame) {
    frame.contentWindow.postMessage({ theme: theme() }, "*");
  }

  document.addEventListener("DOMContentLoaded", () => {
    const frames = document.querySelectorAll("iframe.viewer");
    frames.forEach((frame) => frame.addEventListener("load", () => tell(frame)));
    new MutationObserver(() => frames.forEach(tell)).observe(document.body, { attributeFilter: ["data-theme"] });
  });
})();
