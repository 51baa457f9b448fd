"""An agent that builds a web application and returns a link to it. KEEP=1 leaves the sandbox running, to be looked at in a browser."""
import os

from cove import Sandbox

PAGE = "<h1>Hello from a sandbox</h1>"
sandbox = Sandbox.create(timeout=600)
try:
    sandbox.files.write("site/index.html", PAGE)
    sandbox.commands.start(["python3", "-m", "http.server", "3000", "-d", "/home/user/site"])
    sandbox.commands.run("until python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 3000))' 2>/dev/null; do sleep 0.1; done", timeout=30, check=True)
    print("it answers:", sandbox.ports.request(3000, "/").body.decode())
    print("look at it:", sandbox.preview_url(3000))
finally:
    if not os.environ.get("KEEP"):
        sandbox.kill()
