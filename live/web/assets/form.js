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
      if (mine === asked) problem.textContent = T("pelt web does not answer");
    }
  };
  // A field that no such test takes is hidden, unless it is filled in: then the problem says why it cannot be.
  const offer = () => {
    const target = form.target.value.trim(), lab = /^lab:(?!loopback$)/.test(target);
    const proto = form.proto ? form.proto.value || form.proto.placeholder : "tcp,udp";
    const takes = {lab, star: lab && !/^lab:(direct|switch|router|nat|fast)$/.test(target),
      tcp: proto.includes("tcp"), udp: proto.includes("udp")};
    for (const field of form.querySelectorAll("[data-for]")) {
      const input = field.querySelector("input, textarea"), filled = input.type === "checkbox" ? input.checked : input.value.trim();
      field.hidden = field.dataset.for && !takes[field.dataset.for] && !filled;
    }
  };
  offer();
  form.addEventListener("input", () => {
    offer();
    clearTimeout(wait);
    wait = setTimeout(check, 150);
  });
})();
