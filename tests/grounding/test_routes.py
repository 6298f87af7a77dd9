"""Claims about HTTP routes, methods, status codes and environment variables, in the forms of several frameworks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sample_project import commit, make_repository

from cases import each
from cortex_py import Cortex

APP = """import os

PORT = int(os.environ.get("APP_PORT", "8080"))
DEBUG = os.getenv("APP_DEBUG", "off")


@app.get("/users/{id}")
def read_user(id):
    if not id:
        raise HTTPException(status_code=404, detail="no user")
    return {"id": id}


@app.post("/users", status_code=201)
def create_user(body):
    return body


@app.route("/login", methods=["GET", "POST"])
def login():
    return redirect("/home"), 302


@app.route("/about")
def about():
    return page("about")
"""
SERVER = """const host = process.env.BIND_HOST || 'localhost'

function listOrders (req, res) {
  if (!req.user) {
    return res.status(401).end()
  }
  res.json([])
}

router.get('/orders', listOrders)
router.delete('/orders/:id', removeOrder)
"""
ROUTES = """package web

func routes(r *mux.Router) {
\tr.HandleFunc("/health", health).Methods("GET")
\tr.HandleFunc("POST /jobs", startJob)
}

func startJob(w http.ResponseWriter, r *http.Request) {
\tw.WriteHeader(http.StatusAccepted)
}
"""
CONTROLLER = """package shop;

public class ItemController {
  @GetMapping("/items")
  public List<Item> listItems() {
    return items;
  }

  @PutMapping("/items/{id}")
  public Item replaceItem(String id) {
    return item;
  }
}
"""
TRUE = [
    "`read_user` handles GET requests on `/users/{id}`.",
    "`GET /users/{user_id}` is served by `read_user`.",
    "The `/login` route accepts GET and POST.",
    "The `/about` route accepts only GET.",
    "`/users` is not served by `read_user`.",
    "`read_user` returns 404 when there is no id.",
    "`POST /users` answers with status 201.",
    "`login` responds with 302.",
    "`APP_PORT` defaults to 8080.",
    "The environment variable `APP_DEBUG` defaults to off.",
    "The environment variable `APP_DEBUG` is false by default.",
    "`APP_PORT` is read from the environment.",
    "`listOrders` serves `GET /orders`.",
    "`DELETE /orders/:id` is handled by `removeOrder`.",
    "`listOrders` answers with HTTP 401 if there is no user.",
    "The environment variable `BIND_HOST` defaults to localhost.",
    "`/health` is served by `health`.",
    "`startJob` serves POST requests on `/jobs`.",
    "`startJob` responds with status 202.",
    "`listItems` handles `GET /items`.",
]
FALSE = [
    ("`read_user` handles POST requests on `/users/{id}`.", "GET /users/{id}"),
    ("`GET /users/{id}` is served by `create_user`.", "`read_user`"),
    ("The `/login` route accepts only GET.", "GET, POST"),
    ("The `/login` route does not accept POST.", "GET, POST"),
    ("`read_user` returns 403 when there is no id.", "404"),
    ("`POST /users` answers with status 204.", "201"),
    ("`APP_PORT` defaults to 9090.", "8080"),
    ("The environment variable `APP_DEBUG` defaults to on.", "off"),
    ("`listOrders` serves `POST /orders`.", "GET /orders"),
    ("`listOrders` answers with HTTP 403 if there is no user.", "401"),
    ("The environment variable `BIND_HOST` defaults to 0.0.0.0.", "localhost"),
    ("`startJob` responds with status 200.", "202"),
    ("`replaceItem` handles `POST /items/{id}`.", "PUT"),
]
OPEN = [
    "`POST /users` sends a welcome mail.",
    "The `/login` route accepts GET and POST and checks a second factor.",
    "`/health` handles overload.",
    "There is a route `/admin`.",
]


@pytest.fixture(scope="module")
def cortex(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cortex]:
    folder = tmp_path_factory.mktemp("routes")
    make_repository(folder / "project")
    files = {"app.py": APP, "server.js": SERVER, "routes.go": ROUTES, "ItemController.java": CONTROLLER}
    commit(folder / "project", files, "first")
    with Cortex.open(folder / "home", project=folder / "project") as opened:
        yield opened


@each("text", TRUE)
def test_what_a_route_does_is_accepted(cortex: Cortex, text: str) -> None:
    found = cortex.grounding.verify(text)
    assert found.status == "ACCEPT", [(one.reason, one.checks) for one in found.findings]


@each(("text", "instead"), FALSE, ids=[text for text, _ in FALSE])
def test_another_method_handler_code_or_default_is_contradicted(cortex: Cortex, text: str, instead: str) -> None:
    found = cortex.grounding.verify(text)
    assert found.status != "ACCEPT"
    assert found.findings[0].verdict == "contradicted", found.findings[0]
    assert instead in found.findings[0].reason


@each("text", OPEN)
def test_a_route_that_is_there_supports_nothing_else(cortex: Cortex, text: str) -> None:
    assert cortex.grounding.verify(text).status != "ACCEPT"
