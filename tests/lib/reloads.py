"""Reloads the configuration, and lists the devices there are then."""
import signal

from service import configuration, poll

DONE = "has been read again"


def read_again(service, says=DONE):
    """Sends SIGHUP and waits for the log's line; returns the log since then."""
    before = len(service.log.read_text())
    service.process.send_signal(signal.SIGHUP)

    def news():
        return service.log.read_text()[before:]
    poll(lambda: says in news(), 60, says)
    return news()


def reload(service, text, says=DONE):
    """Writes the file and has it read."""
    service.file.write_text(configuration(text))
    return read_again(service, says)


def devices(service):
    return {d["id"]: d["state"] for d in service.get("/v1/devices").json()["devices"]}
