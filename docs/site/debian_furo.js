// SPDX-License-Identifier: Apache-2.0
// The buttons of the theme: light, dark, or as the system says. In place of Furo's own script, which Debian packages as a module
// that imports another one, so that browsers refuse it as the script that the pages load.
"use strict";
document.documentElement.classList.remove("no-js");  // which hides the buttons
const themes = window.matchMedia("(prefers-color-scheme: dark)").matches ? ["auto", "light", "dark"] : ["auto", "dark", "light"];
for (const button of document.getElementsByClassName("theme-toggle")) {
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(document.body.dataset.theme) + 1) % themes.length];
    document.body.dataset.theme = next;
    localStorage.setItem("theme", next);
  });
}
