"use strict";
// The form shows the command that it makes, and what is wrong with it, as the server says.
(() => {
  const form = document.getElementById("form"), line = document.getElementById("line"), problem = document.getElementById("problem");
  let wait = 0, asked = 0;
  const check = async () => {
    const mine = ++asked, body = new URLSearchParams(new FormData(form));
    body.delete("code");
    try {
      const answer = await fetch("/new/check", {method: "POST", body});
      const said = await answer.json();
      if (mine !== asked) return; // a later one is on its way
      line.textContent = said.command;
      problem.textContent = body.get("target") ? said.problem : "";
    } catch {
      if (mine === asked) problem.textContent = "pelt web does not answer";
    }
  };
  form.addEventListener("input", () => {
    clearTimeout(wait);
    wait = setTimeout(check, 150);
  });
})();
