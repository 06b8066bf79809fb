"""``python -m tests.bench.receiver SECONDS``: answers 204 to each POST, after so many seconds.

It prints its URL first.
"""

import asyncio
import re
import sys
from typing import Final

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


async def main(seconds: float) -> None:
    """Serve until killed."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        await reader.readexactly(int(length[1]) if length else 0)
        await asyncio.sleep(seconds)
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", backlog=1024)
    host, port = server.sockets[0].getsockname()
    print(f"http://{host}:{port}/", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1])))
