"""Agent checks, as a balancer makes them."""
import socket

from service import PATIENCE


def agent_says(host, port):
    """Returns the line that it gets, to the end of the connection."""
    with socket.create_connection((host, port), timeout=PATIENCE) as connection:
        with connection.makefile() as answer:
            return answer.read()
