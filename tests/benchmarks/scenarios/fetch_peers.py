"""`make bench-peers`: get the servers to compare with, into build/peers, each by the tool that its users take."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.benchmarks.scenarios.peers import FETCHED, PEERS

PACKAGES = {"mosquitto": "mosquitto", "rabbitmq": "rabbitmq-server", "nats": "nats-server"}  # by peer
GO_PROGRAMS = {"nats-server": "github.com/nats-io/nats-server/v2", "mochi-mqtt": "github.com/mochi-mqtt/server/v2/cmd"}
ROCKETMQ_VERSION = "5.5.0"
OLDER_ROCKETMQ_VERSION = "4.9.7"
MOSQUITTO_VERSION = "2.1.2"
MOSQUITTO_SOURCES = "https://github.com/eclipse-mosquitto/mosquitto"
MOSQUITTO_WITHOUT = ["SQLITE", "HTTP_API", "EDITLINE", "DOCS"]
OPENSSL_HEADERS = Path("/usr/include/openssl/ssl.h")  # libssl-dev's; TLS needs them, and WebSocket needs TLS
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>bench</groupId><artifactId>peer</artifactId><version>1</version>
  <dependencies><dependency>
    <groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-broker</artifactId><version>{version}</version>
  </dependency><dependency>
    <groupId>org.apache.rocketmq</groupId><artifactId>rocketmq-namesrv</artifactId><version>{version}</version>
  </dependency></dependencies>
</project>
"""


class CannotError(Exception):
    """The tool is not there, or did not succeed."""


def call(*command: str, folder: Path | None = None, **env: str) -> None:
    """Run a tool.

    Raises:
        CannotError: It is not installed, or it failed.
    """
    if shutil.which(command[0]) is None:
        raise CannotError(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=folder, env={**os.environ, **env}, check=False)
    if done.returncode:
        raise CannotError(f"{' '.join(command)} ended with {done.returncode}")


def fetch_packages() -> None:
    """Install from the distribution, whose packages may start their servers on their usual ports."""
    missing = [package for peer, package in PACKAGES.items() if PEERS[peer].find_version() is None]
    if missing and os.geteuid():
        raise CannotError(f"needs root: sudo apt-get install {' '.join(missing)}")
    failures = []
    for package in missing:  # one by one: not every distribution has them all
        try:
            call("apt-get", "install", "-y", "--no-install-recommends", package)
        except CannotError as error:
            failures.append(str(error))
    if failures:
        raise CannotError("; ".join(failures))


def fetch_mosquitto() -> None:
    """Build Mosquitto 2.1 from its sources, as distributions have 2.0; needs cJSON's headers (libcjson-dev).

    It has TLS and WebSocket where OpenSSL's headers are there.
    """
    folder = FETCHED / "mosquitto"
    if not (folder / "src").exists():
        call("git", "clone", "-q", "--depth=1", f"--branch=v{MOSQUITTO_VERSION}", MOSQUITTO_SOURCES, str(folder))
    parts = MOSQUITTO_WITHOUT if OPENSSL_HEADERS.exists() else [*MOSQUITTO_WITHOUT, "TLS", "WEBSOCKETS"]
    without = [f"WITH_{part}=no" for part in parts]
    call("make", "-s", *without, folder=folder / "libcommon")
    call("make", "-s", *without, "mosquitto", folder=folder / "src")
    shutil.copy2(folder / "src" / "mosquitto", FETCHED / "bin")


def fetch_go() -> None:
    """Build the newest NATS and mochi-mqtt."""
    for program, package in GO_PROGRAMS.items():
        call("go", "install", f"{package}@latest", GOBIN=str(FETCHED / "go"))
        built = FETCHED / "go" / Path(package.removesuffix("/v2")).name
        built.replace(FETCHED / "bin" / program)


def fetch_rumqttd() -> None:
    """Build the newest rumqttd; takes some minutes."""
    call("cargo", "install", "--quiet", "rumqttd", "--root", str(FETCHED))


def fetch_rocketmq() -> None:
    """Get the official broker, in two versions, and all that it stands on; the older is for tests of the SDK."""
    for name, version in (("rocketmq", ROCKETMQ_VERSION), ("rocketmq-4.9", OLDER_ROCKETMQ_VERSION)):
        folder = FETCHED / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(POM.format(version=version))
        call("mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib", folder=folder)


def fetch_amqtt() -> None:
    """Install amqtt beside us, where the tests have not done so."""
    if PEERS["amqtt"].find_version() is None:
        call(sys.executable, "-m", "pip", "install", "--quiet", "amqtt")


FETCHERS: dict[str, Callable[[], None]] = {
    "packages": fetch_packages,
    "mosquitto": fetch_mosquitto,
    "go": fetch_go,
    "rumqttd": fetch_rumqttd,
    "rocketmq": fetch_rocketmq,
    "amqtt": fetch_amqtt,
}


def fetch(names: Sequence[str]) -> None:
    """Get what can be had; say of the rest why not."""
    (FETCHED / "bin").mkdir(parents=True, exist_ok=True)
    for name in names:
        print(f"getting {name}", flush=True)
        try:
            FETCHERS[name]()
        except CannotError as error:
            print(f"  without {name}: {error}")


def main() -> None:
    """Get peers, then list what there is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of: {', '.join(FETCHERS)}")
    names = parser.parse_args().names
    if unknown := [name for name in names if name not in FETCHERS]:
        parser.error(f"unknown: {', '.join(unknown)}; there are: {', '.join(FETCHERS)}")
    fetch(names or list(FETCHERS))
    for name, peer in PEERS.items():
        if not peer.is_ours and name != "null":
            print(f"{name:12} {peer.find_version() or 'not installed'}")


if __name__ == "__main__":
    main()
