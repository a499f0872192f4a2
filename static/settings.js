// Shows what belongs to the provider that is chosen. Without this file everything is shown.

const provider = document.getElementById("id_provider");

function showWhatBelongs() {
  for (const part of document.querySelectorAll("[data-for]")) {
    part.hidden = !part.dataset.for.split(" ").includes(provider.value);
  }
}

provider.addEventListener("change", () => {
  document.getElementById("trial").replaceChildren(); // It was about another one.
  showWhatBelongs();
});

showWhatBelongs();

// A button that is disabled while it works, or gone with what it removed, takes the focus along.
let pressed;

document.addEventListener("htmx:beforeRequest", () => {
  pressed = document.activeElement;
});

document.addEventListener("htmx:afterRequest", () => {
  if (document.activeElement !== document.body || !pressed) return;
  (pressed.isConnected ? pressed : document.getElementById("id_api_key")).focus();
});
