// Requests to the server of this page.

const csrf = document.querySelector("meta[name=csrf]")?.content ?? "";

// Whether this server, and the session's scopes, take changes.
export const mayChange = document.body.dataset.mayChange === "yes";

export async function get(path, query = {}, signal = undefined) {
  const asked = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== "" && value !== undefined));
  return answered(await fetch(`/api/v1${path}${asked.size ? `?${asked}` : ""}`, { signal }));
}

export async function change(method, path, body = undefined) {
  const headers = { "Cortex-CSRF": csrf };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  return answered(await fetch(`/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) }));
}

async function answered(response) {
  const found = await response.json().catch(() => null);
  if (response.ok) return found;
  throw new Error(found?.error?.message ?? `The server answered ${response.status}.`);
}
