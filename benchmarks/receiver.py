"""A webhook receiver that costs next to nothing: ``python -m benchmarks.receiver PORT ANSWER_MS``.

It answers every request with 204 after that many ms, and with ``never`` it does not answer at all.
"""

import asyncio
import sys

_ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


class _Receiver(asyncio.Protocol):
    """One connection: one request after the other, each with a Content-Length."""

    def __init__(self, answer_s: float | None) -> None:
        self._answer_s = answer_s
        self._come = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where to write to."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer each request that has come whole."""
        self._come += data
        while (head := self._come.find(b"\r\n\r\n")) >= 0:
            length = int(self._come.lower().split(b"content-length:", 1)[1].split(b"\r", 1)[0])
            if len(self._come) < head + 4 + length:
                return
            self._come = self._come[head + 4 + length :]
            self._answer()

    def _answer(self) -> None:
        if self._answer_s == 0:
            self._transport.write(_ANSWER)
        elif self._answer_s is not None:
            asyncio.get_running_loop().call_later(self._answer_s, self._transport.write, _ANSWER)


async def _serve(port: int, answer_s: float | None) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: _Receiver(answer_s), "127.0.0.1", port, backlog=512)
    await server.serve_forever()


if __name__ == "__main__":
    told = sys.argv[2]
    asyncio.run(_serve(int(sys.argv[1]), None if told == "never" else int(told) / 1000))
