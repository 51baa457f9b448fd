"""connect.py: a proxy that knows CONNECT alone, on a free port of 127.0.0.1. Names that end with .example are this host to it. Prints the
port, then each request's first line; ends with its standard input."""
import socket
import sys
import threading


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def serve(client):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += client.recv(1)
    line = head.split(b"\r\n")[0].decode()
    print(line, flush=True)
    host, port = line.split()[1].rsplit(":", 1)
    server = socket.create_connection(("127.0.0.1" if host.endswith(".example") else host, int(port)))
    client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    threading.Thread(target=pump, args=(client, server), daemon=True).start()
    pump(server, client)


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)


def accept():
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()


threading.Thread(target=accept, daemon=True).start()
sys.stdin.read()
