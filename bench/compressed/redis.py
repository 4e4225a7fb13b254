"""redis-server under a skewed client: all but one of a thousand reads are of the newest tenth of the keys.

Usage: redis.py KEYS REQUESTS, with the words before the server in ISOTHERM_WRAP. Prints the answers' bytes, and the time of the reads to standard error.
"""
import os
import random
import shlex
import socket
import subprocess
import sys
import tempfile
import time

VALUE_BYTES = 1024
PIPELINE = 100


def connect(path: str, server: subprocess.Popen) -> socket.socket:
    for _ in range(300):
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect(path)
            return client
        except OSError:
            client.close()
        if server.poll() is not None:
            sys.exit("redis.py: the server ended before it answered")
        time.sleep(0.1)
    sys.exit("redis.py: the server does not answer")


def command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def exchange(client: socket.socket, commands: list[bytes], answer_bytes: int) -> int:
    """Sends commands and reads so many bytes for each."""
    client.sendall(b"".join(commands))
    left = wanted = answer_bytes * len(commands)
    while left > 0:
        received = len(client.recv(min(left, 1 << 20)))
        if received == 0:
            sys.exit("redis.py: the server closed the connection")
        left -= received
    return wanted


def main() -> None:
    keys, requests = int(sys.argv[1]), int(sys.argv[2])
    numbers = random.Random(1)
    with tempfile.TemporaryDirectory(prefix="isotherm-redis-") as folder:
        path = os.path.join(folder, "socket")
        server = subprocess.Popen(shlex.split(os.environ.get("ISOTHERM_WRAP", "")) + [
            "redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--appendonly", "no", "--dir", folder, "--daemonize", "no"],
            stdout=subprocess.DEVNULL)
        try:
            client = connect(path, server)
            for first in range(0, keys, PIPELINE):
                sets = [command(b"SET", b"key:%09d" % key, numbers.randbytes(VALUE_BYTES // 2) + b"%09d" % key * (VALUE_BYTES // 18) + b"." * (VALUE_BYTES // 2 - VALUE_BYTES // 18 * 9))
                        for key in range(first, min(keys, first + PIPELINE))]
                exchange(client, sets, len("+OK\r\n"))
            begin = time.monotonic()
            total = 0
            answer = len(b"$%d\r\n" % VALUE_BYTES) + VALUE_BYTES + 2
            for _ in range(0, requests, PIPELINE):
                chosen = [keys - 1 - numbers.randrange(keys // 10 if numbers.random() < 0.999 else keys) for _ in range(PIPELINE)]
                total += exchange(client, [command(b"GET", b"key:%09d" % key) for key in chosen], answer)
            seconds = time.monotonic() - begin
            client.sendall(command(b"SHUTDOWN", b"NOSAVE"))
            status = server.wait(60)
        finally:
            if server.poll() is None:
                server.terminate()
                server.wait()
    print(f"bytes {total}")
    print(f"kernel_seconds {seconds:.6f}", file=sys.stderr)
    sys.exit(status)


main()
