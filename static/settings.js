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
