"""Socket.IO's Python client, as an application would use it. Usage: BASE TOKEN FOLDER STORY"""

import asyncio
import json
import os
import sys

import requests
import socketio

base, token, folder, story = sys.argv[1:5]
HEADERS = {"Authorization": f"Bearer {token}"}
TRANSPORTS = (None, ["websocket"], ["polling"])
PATIENCE_S = 60


async def api(method, path, body=None):
    def ask():
        answer = requests.request(method, f"{base}/api{path}", headers=HEADERS, json=body, timeout=PATIENCE_S)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    return await asyncio.to_thread(ask)


async def launch(script):
    return (await api("POST", "/agents", {"type": "fake", "prompt": json.dumps(script)}))["agentId"]


async def events(agent):
    every = []
    while page := await api("GET", f"/agents/{agent}/events?since={len(every)}"):
        every += page
    return every


class Follower:
    """Keeps the events of agents. `applied` has the number of the newest event of each."""

    def __init__(self, **options):
        self.messages, self.applied, self.heard, self.faults = {}, {}, {}, []
        self.io = socketio.AsyncClient(reconnection_delay=0.02, reconnection_delay_max=0.05, **options)
        self.io.on("agent:message", self.message)
        self.io.on("*", self.other)

    async def connect(self, transports):
        auth = lambda: {"token": token, "since": dict(self.applied)}
        await self.io.connect(base, auth=auth, transports=transports, wait_timeout=PATIENCE_S)
        return self

    def message(self, event):
        agent, number = event["agentId"], event["sequence"]
        if number != self.applied.get(agent, 0) + 1 or number != event["message"]["sequenceNumber"]:
            self.faults.append((number, self.applied))
        self.messages.setdefault(agent, []).append(event["message"])
        self.applied[agent] = number

    def other(self, name, event=None):
        self.heard.setdefault(name, []).append(event)

    async def wait(self, until):
        async with asyncio.timeout(PATIENCE_S):
            while not until():
                assert not self.faults, self.faults
                await asyncio.sleep(0.005)

    async def has_all(self, agent):
        every = await events(agent)
        await self.wait(lambda: len(every) <= self.applied.get(agent, 0))
        assert self.messages[agent] == every

    def has(self, name, agent):
        return any((event.get("agentId") or event["agent"]["agentId"]) == agent for event in self.heard.get(name, []))

    async def call(self, name, value):
        return await self.io.call(name, value, timeout=PATIENCE_S)


async def talk():
    for transports in TRANSPORTS:
        follower = await Follower().connect(transports)
        agent = await launch({"deltas": 60})
        ack = await follower.call("subscribe", {"agentId": agent})
        assert (ack["ok"], ack["agentId"]) == (True, agent), ack
        await follower.wait(lambda: follower.has("agent:complete", agent))
        await follower.has_all(agent)
        await follower.wait(lambda: follower.has("agent:created", agent))
        assert follower.io.transport() == (transports or ["websocket"])[0]
        assert (await follower.call("unsubscribe", {"agentId": agent}))["ok"]
        wrong = await follower.call("subscribe", {"agentId": "x"})
        assert (wrong["ok"], wrong["error"]["code"]) == (False, "not_found"), wrong
        await api("DELETE", f"/agents/{agent}")
        await follower.wait(lambda: follower.has("agent:deleted", agent))
        failing = await launch({"mode": "crash", "deltas": 1, "code": 3})
        await follower.io.emit("subscribe", {"agentId": failing})
        await follower.wait(lambda: follower.has("agent:error", failing))
        for name in ("agent:status", "agent:updated"):
            assert follower.heard.get(name), name
        await follower.io.disconnect()


def refused(transports, auth):
    """What the client with a thread for each handler hears."""
    heard = []
    client = socketio.Client(reconnection=False)
    client.on("connect_error", heard.append)
    try:
        client.connect(base, auth=auth, transports=transports, wait_timeout=PATIENCE_S)
        raise AssertionError("connected")
    except socketio.exceptions.ConnectionError:
        assert heard[0]["data"]["code"] == "unauthenticated", heard
    client.disconnect()


async def access():
    for transports in TRANSPORTS:
        for auth in (None, {"token": "wrong"}):
            await asyncio.to_thread(refused, transports, auth)
        client = socketio.AsyncClient()
        await client.connect(base, headers=HEADERS, transports=transports, wait_timeout=PATIENCE_S)
        await client.disconnect()


async def binary():
    for transports in TRANSPORTS:
        follower = await Follower(reconnection=False).connect(transports)
        await follower.io.emit("subscribe", b"x")
        await follower.wait(lambda: follower.heard.get("error"))
        assert follower.heard["error"][0]["message"] == "binary data is not supported; send JSON"
        await follower.wait(lambda: not follower.io.connected)


async def restart():
    for at, transports in enumerate(TRANSPORTS):
        follower = await Follower().connect(transports)
        agent = await launch({"deltas": 400, "pace_us": 10_000, "word": "🦀 "})
        await follower.io.emit("subscribe", {"agentId": agent})
        await follower.wait(lambda: follower.applied.get(agent, 0) >= 20)
        before = len(follower.heard.get("subscribed", []))
        open(os.path.join(folder, f"reached-{at}"), "w").close()
        await follower.wait(lambda: len(follower.heard.get("subscribed", [])) > before)
        await follower.wait(lambda: follower.has("agent:complete", agent))
        await follower.has_all(agent)
        await follower.io.disconnect()


asyncio.run({"talk": talk, "access": access, "binary": binary, "restart": restart}[story]())
