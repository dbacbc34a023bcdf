"""A small service over HTTP for the tests of the client: real plans, a real ledger, and faults on demand."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from contextlib import contextmanager, suppress
from fractions import Fraction
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import tacit as tc
from tacit.fixes import to_json
from tacit.tables import EXAMPLE_HOSPITALS, example_visits

TOKEN = "tct_canary-0123456789"
ANA = "visits/u_ana/1"


class SmallService:
    """One dataset, one analyst with an allotment, and what the client sent."""

    def __init__(self, *, kind="table"):
        self.ledger = tc.Ledger.memory()
        self.visits = self.protected("visits", self.ledger)
        self.ledger.create_account(ANA, parent="visits", budget=tc.Budget(epsilon=2))
        self.kind = kind
        self.queries, self.keys, self.releases, self.seen = {}, {}, {}, []
        #: How often a waiting question says so before it is answered.
        self.looks = 2
        #: Faults: functions of (method, path) that return what happens instead, once each.
        self.faults = []

    @staticmethod
    def protected(name, ledger):
        return tc.protect(
            {"visits": example_visits()}, name=name, unit="patient_id", ledger=ledger,
            bounds={"length_of_stay": (0, 30)}, keys={"hospital": EXAMPLE_HOSPITALS},
            budget=tc.Budget(epsilon=5),
        )  # fmt: skip

    def handle(self, method, path, body, headers):
        """Return status, document and location."""
        parts = [unquote(part) for part in path.removeprefix("/api/v1/").split("/")]
        match method, *parts:
            case "GET", "datasets":
                return 200, {
                    "datasets": [{"name": "visits", "title": "Visits", "kind": self.kind}],
                    "next": None,
                }
            case "GET", "datasets", "visits":
                return 200, self.shown()
            case "POST", "plans":
                plan = self.visits.plan_from(body["plan"])
                paid = plan.stored(account=body.get("account", ANA)) is not None
                words = {
                    "name": ANA,
                    "yours_after": "one more question of up to epsilon 1; or 2 more like this one",
                    "words": "2 more questions like this one",
                }
                return 200, {"plan": plan.hash, "stored": {"paid": paid, "exists": None}, "account": words}
            case "POST", "queries":
                return self.ask(body, headers.get("Idempotency-Key", ""))
            case "GET", "queries":
                shown = [{k: v for k, v in one.items() if k != "document"} for one in self.queries.values()]
                return 200, {"queries": shown, "next": None}
            case "GET", "queries", query:
                return 200, self.look(self.queries[query])
            case "GET", "releases", release:
                return 200, {"release": release, "document": self.releases[release][1]}
            case "POST", "requests":
                return 201, {"request": "r_1", "state": "open"}
            case "GET", "requests":
                return 200, {
                    "requests": [
                        {"request": "r_1", "kind": "allotment", "dataset": "visits", "state": "approved"}
                    ]
                }
        return 404, problem(tc.TacitError("unknown-table", "there is nothing of that name"), 404)

    def shown(self):
        """Return the dataset as its analyst sees it."""
        own, mine = (self.ledger.account(name) for name in ("visits", ANA))
        listed = [
            {
                "account": one.name,
                "created": "2026-01-01",
                "plan": "",
                "purpose": "monthly report",
                **self.amounts(one),
                "left_to_use": left(one),
            }
            for one in (mine,)
        ]
        return {
            "name": "visits", "title": "Visits", "kind": self.kind, "facts": self.visits.public_facts(),
            "accounts": listed, "oversees": False, **self.amounts(own),
        }  # fmt: skip

    @staticmethod
    def amounts(account):
        budget = account.budget
        exact = {"epsilon": str(budget.epsilon), "delta": str(budget.delta), "rho": None}
        return {"budget": {"exact": exact}, "left": left(account), "filter": account.filter.to_json()}

    def ask(self, body, key):
        assert set(body) <= {"dataset", "plan", "account", "purpose", "method", "arguments", "epsilon"}
        if key not in self.keys:
            name = f"q_{len(self.queries)}"
            self.keys[key], self.queries[name] = name, {
                "query": name, "state": "waiting", "dataset": body["dataset"], "purpose": body["purpose"],
                "looks": 0, "answer_in_s": 0.02,
            }  # fmt: skip
            if "method" in body:
                assert (body["method"], body["arguments"]) == ("count", {"of": "patients"})
                plan = self.visits.agg(n=tc.count_units()).plan(epsilon=Fraction(body["epsilon"]))
            else:
                plan = self.visits.plan_from(body["plan"])
            release = plan.release(purpose=body["purpose"], account=body.get("account", ANA), key=key)
            self.releases[f"r_{name}"] = (plan.hash, release.to_json())
            self.queries[name]["document"] = release.to_json()
        return 202, self.look(self.queries[self.keys[key]])

    def look(self, query):
        query["looks"] += 1
        if query["state"] == "waiting" and query["looks"] > self.looks:
            query["state"] = "finished"
        hidden = {"looks", *(() if query["state"] == "finished" else ("document",))}
        return {name: value for name, value in query.items() if name not in hidden}


def left(account):
    now = account.filter.remaining
    return {"exact": {"epsilon": str(now.epsilon), "delta": str(now.delta), "rho": None}, "words": str(now)}


def problem(error, status):
    return {
        "type": f"/errors/{error.code}", "title": error.what, "status": status, "detail": error.what,
        "why": error.why, "fix": str(error.fix), "fix_data": to_json(error.fix), "code": error.code,
        "request": "x",
    }  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        super().setup()
        self.server.sockets.append(self.connection)

    def do_GET(self):
        self.answer("GET", None)

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        self.answer("POST", json.loads(raw))

    def answer(self, method, body):
        service, path = self.server.service, urlsplit(self.path).path
        service.seen.append((method, self.path, body, dict(self.headers)))
        fault = service.faults.pop(0) if service.faults else None
        if fault == "cut before":
            self.close_connection = True
            return
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            status, document = 401, problem(tc.TacitError("not-allowed", "who are you?"), 401)
        elif isinstance(fault, tuple):
            status, document, *more = fault
            self.send(status, document, dict(more))
            return
        else:
            try:
                with service.lock:
                    status, document = service.handle(method, path, body, self.headers)
            except tc.TacitError as refusal:
                status, document = 422, problem(refusal, 422)
        if fault == "cut after":
            self.close_connection = True
            return
        if fault == "slow":
            time.sleep(5)
        self.send(status, document, {})

    def send(self, status, document, headers):
        raw = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_):
        pass


@contextmanager
def serving(service=None, *, certificate=None):
    """Serve on a free port of this machine, with a certificate by TLS; yields the service and its address."""
    service = service or SmallService()
    service.lock = threading.Lock()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.service, server.sockets, server.daemon_threads = service, [], False
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield service, f"{'http' if certificate is None else 'https'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        for kept in server.sockets:
            with suppress(OSError):  # it is closed already
                kept.shutdown(socket.SHUT_RDWR)
        server.server_close()  # waits for the threads
        thread.join()
