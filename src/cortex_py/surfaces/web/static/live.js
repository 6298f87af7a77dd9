// Live updates: the server says that something changed, and the view looks again. A page that nobody sees does not ask.

export function follow(changed) {
  let source = null;
  const update = () => {
    if (document.hidden) {
      source?.close();
      source = null;
    } else if (!source) {
      source = new EventSource("/api/v1/events");
      source.addEventListener("change", () => changed(true));
      // Something may have changed between the page and the first event.
      source.addEventListener("open", () => changed(false));
    }
  };
  document.addEventListener("visibilitychange", update);
  addEventListener("pagehide", () => source?.close());
  update();
}
