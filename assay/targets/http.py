"""Target `http`: a service answers; a TOML file says how it is asked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import NAMESPACE_URL, uuid4, uuid5

from assay.contracts.json_text import dump_json
from assay.errors import CallError
from assay.targets.contract import TargetKind
from assay.targets.http_file import read_http_file
from assay.targets.http_replies import read_answer, read_events
from assay.targets.http_templates import CONVERSATION, Filler
from assay.targets.offers import collect_offers, name_conversation
from assay.targets.sse import EventReader

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from aiohttp import ClientResponse, ClientSession

    from assay.chat.traffic import Traffic
    from assay.config import RunConfig
    from assay.contracts.chat import ChatReply
    from assay.targets.contract import Ask
    from assay.targets.http_file import HttpFile

CEILING = 32  # requests under way at one time, where the user names no number
CONNECT_S = 10.0  # a service that accepts no connection in this time is not there
MOST_BODY = 64 << 20  # bytes of an answer
OK, REDIRECTS = range(200, 300), range(300, 400)
WHOLE = frozenset({"application/json", "text/html"})  # an answer to a stream's request that is none
IN_HEADERS = " !#&'()*+,/:;=?@[]"  # characters that values may bring into a header


@dataclass(frozen=True, slots=True)
class HttpSite:
    """Where a service is.

    Attributes:
        file: How it is asked.
    """

    file: HttpFile

    @property
    def url(self) -> str:
        """The URL as it is written, without parameters."""
        parts = self.file.shown_url.parts
        whole = "".join(part if isinstance(part, str) else f"{{{{{part.text}}}}}" for part in parts)
        return self.hide_key(whole.partition("?")[0])

    def hide_key(self, text: str) -> str:
        """Return the text with every secret of the file and its environment replaced by `***`."""
        return self.file.secrets.hide(text)

    def explain(self, code: str, said: str) -> str:
        """Say what is wrongly set up, and what to do."""
        place, variables = self.file.place, ", ".join(self.file.variables)
        keys = f"check the headers in {place}" + (f" and the variables {variables}" if variables else "")
        match code:
            case "auth":
                return f"{self.url} refused the request: {said}; {keys}"
            case "not_found":
                return f"{self.url} is not known there: {said}; check the url in {place}"
            case "quota":
                return f"{self.url}: the quota is used up: {said}; {keys}"
            case _:
                return f"cannot reach {self.url}: {said}; is the service running? {place} names it"


@dataclass(frozen=True, slots=True)
class Request:
    """A filled-in request.

    Attributes:
        url: With the environment in it.
        headers: The same.
        body: JSON text; None where there is none.
        missing: Placeholders that the turn has nothing for.
    """

    url: str
    headers: Mapping[str, str]
    body: str | None
    missing: tuple[str, ...]


class HttpAnswerer:
    """Asks a service; belongs to the event loop that first uses it.

    Attributes:
        file: How it is asked.
        space: What the ids of its conversations are made in; a resumed run has that of before.
    """

    def __init__(self, file: HttpFile, traffic: Traffic) -> None:
        """Open its gate; no connection is made yet."""
        from assay.chat.caller import Caller  # slow to import, and not needed for stored answers

        self.file = file
        self._limit = traffic.ceiling or CEILING
        self._timeout_s = traffic.timeout_s
        gate = traffic.open_gate(f"http {file.place}", CEILING)
        self._caller = Caller(HttpSite(file), file.place, gate, traffic, file.secrets)
        # a resumed run goes on with the conversations of the service
        self.space = uuid5(NAMESPACE_URL, traffic.run_id) if traffic.run_id else uuid4()
        self._session: ClientSession | None = None

    def describe(self, ask: Ask) -> str:
        """Return URL and body, with what identifies the file; no headers, and no value of the environment."""
        file, filler = self.file, self._fill(ask, None)
        told = {"target": "http", "place": file.place, "sha256": file.sha256, "method": file.method}
        url = filler.fill_text(file.shown_url, safe="")
        return file.secrets.hide(
            dump_json({**told, "url": url, "body": filler.fill_value(file.body, file.place)})
        )

    async def answer(self, ask: Ask) -> ChatReply:
        """Ask the service."""
        request = self._build(ask)
        if request.missing:
            names = ", ".join(request.missing)
            raise CallError("missing_field", f"{self.file.place}: nothing to put for {names}", attempts=0)
        return await self._caller.call(lambda: self._send(request))

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _fill(self, ask: Ask, space: UUID | None) -> Filler:
        """Open a filler; ids of conversations are new in every run, but for what is kept of a request."""
        roots = self.file.roots
        offers = collect_offers(ask, roots - {CONVERSATION})
        if CONVERSATION in roots:
            offers[CONVERSATION] = name_conversation(ask, space) if space else name_conversation(ask)
        return Filler(offers)

    def _build(self, ask: Ask) -> Request:
        file, filler = self.file, self._fill(ask, self.space)
        headers = {name: filler.fill_text(value, safe=IN_HEADERS) for name, value in file.headers.items()}
        body = None if file.body is None else dump_json(filler.fill_value(file.body, file.place))
        if body is not None and "content-type" not in {name.lower() for name in headers}:
            headers["Content-Type"] = "application/json"
        url = filler.fill_text(file.url, safe="")
        return Request(url, headers, body, tuple(dict.fromkeys(filler.missing)))

    def _open(self) -> ClientSession:
        """Return the session; it keeps no cookie, so that one conversation knows nothing of another."""
        from aiohttp import ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

        if self._session is None:
            limit = min(self._timeout_s, CONNECT_S)
            self._session = ClientSession(
                connector=TCPConnector(limit=self._limit),
                timeout=ClientTimeout(total=None, sock_connect=limit),  # the caller keeps the whole time
                cookie_jar=DummyCookieJar(),
                trust_env=True,
            )
        return self._session

    async def _send(self, request: Request) -> ChatReply:
        """Send one request; where it was redirected to, the secrets of the headers do not go."""
        started = perf_counter()
        body = None if request.body is None else request.body.encode()
        async with self._open().request(
            self.file.method, request.url, headers=request.headers, data=body, allow_redirects=False
        ) as response:
            if response.status not in OK:
                await self._refuse(response)
            if self.file.stream is not None and response.content_type not in WHOLE:
                events = await self._read_stream(response)
                return read_events(self.file, events, (perf_counter() - started) * 1000)
            text = await _read_text(response)
        return read_answer(self.file, text, (perf_counter() - started) * 1000)

    async def _refuse(self, response: ClientResponse) -> None:
        """Raise the failure that an error status is."""
        from assay.chat.failures import FailedCallError, Failure, read_status

        if response.status in REDIRECTS:
            said = (
                f"{response.status}: redirected to {response.headers.get('location')}; write that as the url"
            )
            raise FailedCallError(Failure("not_found", said, None, response.status))
        text = await _read_text(response)
        try:
            content: object = json.loads(text)
        except (ValueError, RecursionError):
            content = text
        headers = {name.lower(): value for name, value in response.headers.items()}
        raise FailedCallError(read_status(response.status, headers, content))

    async def _read_stream(self, response: ClientResponse) -> list[str]:
        """Return the data of all events before the one that ends the answer."""
        from assay.chat.failures import FailedCallError, Failure

        stream, reader = self.file.stream, EventReader()
        done = stream.done if stream else ""
        events: list[str] = []
        size = 0
        async for piece in response.content.iter_any():
            size += len(piece)
            _check_size(size)
            events += reader.feed(piece)
            if done in events:
                return events[: events.index(done)]
        events += reader.finish()
        if done in events:
            return events[: events.index(done)]
        if stream is not None and stream.is_marked:
            raise FailedCallError(Failure("network", f"the stream ended without {done!r}"))
        return events


async def _read_text(response: ClientResponse) -> str:
    data = bytearray()
    async for piece in response.content.iter_any():
        data += piece
        _check_size(len(data))
    try:
        return data.decode(response.charset or "utf-8", "replace")
    except LookupError:  # a charset that nobody knows
        return data.decode("utf-8", "replace")


def _check_size(size: int) -> None:
    if size > MOST_BODY:
        raise CallError("unparseable", f"the service sent more than {MOST_BODY >> 20} MB")


def build_http(config: RunConfig, traffic: Traffic) -> HttpAnswerer:
    """Read the TOML file that a configuration names.

    Raises:
        ConfigError: It cannot be read, is malformed, or names a variable that is not set.
    """
    return HttpAnswerer(read_http_file(config.target.place or ""), traffic)


KIND = TargetKind("http", "asks an HTTP service that a TOML file describes", build_http)
