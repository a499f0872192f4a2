// What the import pages do beyond htmx. Each works without this file as well.

// Said once, when it changes: the part with the progress is replaced every second.
function sayState() {
  const part = document.getElementById("progress") ?? document.getElementById("job");
  const said = document.getElementById("said");
  if (!part || !said) return;
  document.title = part.dataset.title;
  if (said.textContent !== part.dataset.said) said.textContent = part.dataset.said;
}

function fileField(event) {
  return event.target.matches?.("input.drop") ? event.target : null;
}

document.addEventListener("change", (event) => {
  const field = fileField(event);
  if (!field) return;
  // Shown before the upload, not after it.
  const isTooLarge = field.files[0]?.size > Number(field.dataset.largest);
  field.setCustomValidity(isTooLarge ? field.dataset.tooLarge : "");
  field.reportValidity();
});

for (const [name, isOver] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
  document.addEventListener(name, (event) => fileField(event)?.classList.toggle("over", isOver));
}

document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target.id === "import-form") showUpload("Uploading the file …");
});

document.addEventListener("htmx:xhr:progress", (event) => {
  const { loaded, total, lengthComputable } = event.detail;
  const bar = document.getElementById("busy-bar");
  if (event.target.id !== "import-form" || !lengthComputable || bar.dataset.sent) return;
  if (loaded < total) {
    bar.max = total;
    bar.value = loaded;
    return;
  }
  bar.dataset.sent = "yes"; // What is reported from here on is the answer coming back.
  bar.removeAttribute("value");
  showUpload("It has arrived and is being read: a few seconds for every 100 MB …");
});

document.addEventListener("htmx:afterRequest", (event) => {
  if (event.target.id !== "import-form") return;
  const bar = document.getElementById("busy-bar");
  bar?.removeAttribute("data-sent");
  bar?.removeAttribute("value");
});

function showUpload(sentence) {
  document.getElementById("busy-text").textContent = sentence;
}

document.addEventListener("htmx:responseError", (event) => {
  const part = event.target.closest?.("#progress");
  if (part && event.detail.xhr.status === 404) {
    part.replaceChildren("This import has been discarded.");
    part.replaceWith(part.firstChild); // With the part goes its asking.
  }
});

document.addEventListener("htmx:afterSettle", () => {
  sayState();
  // Focus was on what is no longer there: it goes to what has come in its place.
  if (document.activeElement !== document.body || document.getElementById("progress")) return;
  document.querySelector("#import-form [aria-invalid], #job #outcome")?.focus();
});

sayState();
