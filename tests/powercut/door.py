"""In the machine of a power cut: the server, which listens on loopback alone, for the host behind QEMU; and its command line.

Port 8000 goes to 127.0.0.1:8000. Port 8001: a line with the arguments of `cove` as JSON; the answer is what it said."""
import asyncio
import json

ADDRESS = "10.0.2.15"  # what QEMU forwards to
under_way = set()      # asyncio itself forgets a task whose connection is half closed


async def pour(source, to):
    try:
        while data := await source.read(65536):
            to.write(data)
            await to.drain()
        to.write_eof()
    except OSError:
        to.close()


async def relay(reader, writer):
    under_way.add(asyncio.current_task())
    try:
        there, back = await asyncio.open_connection("127.0.0.1", 8000)
        await asyncio.gather(pour(reader, back), pour(there, writer))
        back.close()
    except OSError:
        pass
    finally:
        writer.close()
        under_way.discard(asyncio.current_task())


async def command(reader, writer):
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("cove", *json.loads(await reader.readline()), stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    writer.write(json.dumps({"returncode": process.returncode, "stdout": out.decode(), "stderr": err.decode()}).encode())
    writer.close()


async def main():
    servers = [await asyncio.start_server(work, ADDRESS, port) for work, port in ((relay, 8000), (command, 8001))]
    await asyncio.gather(*(server.serve_forever() for server in servers))


asyncio.run(main())
