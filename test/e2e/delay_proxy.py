"""delay_proxy.py PORT HOST HOST-PORT DELAY-MS SWALLOW: what comes to PORT goes on to HOST, and back, each byte DELAY-MS later.

While there is a file SWALLOW the line is half open: connections are taken, and what is in them leads nowhere, in neither
direction; a connection that has lost bytes stays so for ever.  The file SWALLOW.up says that the proxy listens."""
import asyncio
import os
import sys

port, host, host_port, delay, swallow = sys.argv[1:]
QUEUE_MAX = 64  # pieces under way in one direction; more wait at their sender


class Pair:
    """Both directions of a connection."""

    dead = False

    async def carry(self, reader, writer):
        loop, queue = asyncio.get_running_loop(), asyncio.Queue(QUEUE_MAX)

        async def deliver():
            piece = b"-"
            while piece:
                due, piece = await queue.get()
                await asyncio.sleep(due - loop.time())
                self.dead |= os.path.exists(swallow)
                if not self.dead and not piece:
                    writer.close()
                elif not self.dead:
                    writer.write(piece)
                    await writer.drain()

        end = asyncio.ensure_future(deliver())
        piece = b"-"
        while piece:
            piece = await reader.read(65536)
            await queue.put((loop.time() + float(delay) / 1000, piece))
        await end


async def serve(reader, writer):
    pair = Pair()
    try:
        if os.path.exists(swallow):
            while await reader.read(65536):
                pass
            return
        far_reader, far_writer = await asyncio.open_connection(host, int(host_port))
        await asyncio.gather(pair.carry(reader, far_writer), pair.carry(far_reader, writer), return_exceptions=True)
    except OSError:
        pass
    finally:
        writer.close()


async def main():
    server = await asyncio.start_server(serve, None, int(port))
    open(swallow + ".up", "w").close()
    await server.serve_forever()


asyncio.run(main())
