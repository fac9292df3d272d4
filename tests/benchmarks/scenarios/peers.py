"""The servers that are measured: whether each is installed, in what version, and how it is started.

All are started as their users would for the work of the scenarios: on this machine only, without passwords, queues
without a limit, and to disk where they persist. `python -m tests.benchmarks.scenarios.fetch_peers` gets most of them.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gateway.version import VERSION
from tests.benchmarks.scenarios.server import ROOT, Server, make_folder, spare_ports, spawn, wait_until_up
from tests.support.certificates import server_files

FETCHED = ROOT / "build" / "peers"
RABBIT_SCRIPTS = Path("/usr/lib/rabbitmq/bin")  # what Debian's and RabbitMQ's own packages use
JAVA_OPTIONS = [
    "-Xms1g",
    "-Xmx1g",
    *(f"--add-exports=java.base/{package}=ALL-UNNAMED" for package in ("jdk.internal.ref", "sun.nio.ch")),
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("sun.nio.ch", "java.nio", "java.lang")),
]


@dataclass(frozen=True)
class Peer:
    """A server program. `find_version` gives None where it is not installed."""

    name: str
    doors: frozenset[str]
    find_version: Callable[[], str | None]
    launch: Callable[[Path, dict[str, int]], Server]
    is_ours: bool = False
    extra_ports: tuple[str, ...] = ()  # ports that it needs besides its doors

    def start(self) -> Server:
        """Start it on spare ports and return when it listens; it is stopped if it does not, or if we are."""
        names = [*sorted(self.doors), *self.extra_ports]
        ports = dict(zip(names, spare_ports(len(names)), strict=True))
        server = self.launch(make_folder(self.name), ports)
        server.ports = {door: ports[door] for door in self.doors}
        try:
            wait_until_up(server)
        except BaseException:
            server.stop()
            raise
        return server


def find_program(name: str) -> str | None:
    """Return the path of a program: a fetched one first, then one that is installed."""
    places = (
        str(FETCHED / "bin"),
        str(Path(sys.executable).parent),
        os.environ["PATH"],
        "/usr/sbin",
        "/usr/local/sbin",
    )
    return shutil.which(name, path=os.pathsep.join(places))


def version_of(program: str, *arguments: str, pattern: str = r"\d+\.\d+[\w.-]*") -> str | None:
    """Return the version that `program` prints."""
    if (path := find_program(program)) is None:
        return None
    said = subprocess.run([path, *arguments], capture_output=True, text=True, check=False, timeout=30)
    found = re.search(pattern, said.stdout + said.stderr)
    return found.group() if found else "?"


def built_version(program: str) -> Callable[[], str | None]:
    """Return how to read the version of a Go program that does not print it."""

    def find() -> str | None:
        path, go = find_program(program), shutil.which("go")
        if path is None:
            return None
        if go is None:
            return "?"
        said = subprocess.run([go, "version", "-m", path], capture_output=True, text=True, check=False).stdout
        found = re.search(r"^\s+mod\s+\S+\s+v(\S+)", said, flags=re.MULTILINE)
        return found.group(1) if found else "?"

    return find


# The gateway


def gateway(flush: str) -> Callable[[Path, dict[str, int]], Server]:
    """Return how to start the gateway in one way of making records safe."""

    def launch(folder: Path, ports: dict[str, int]) -> Server:
        listen = {"amqp": "amqp", "broker": "rocketmq", "namesrv": "namesrv", "admin": "admin"}
        doors = [f"--{flag}={f'127.0.0.1:{ports[door]}' if door in ports else 'off'}" for flag, door in listen.items()]
        serve = ["serve", f"--data-dir={folder / 'data'}", f"--flush={flush}"]
        command = [sys.executable, "-m", "gateway", *serve, *doors]
        mqtt: list[object] = [f"127.0.0.1:{ports[door]}" for door in ("mqtt", "plain") if door in ports]
        if "mqtts" in ports:
            certificate, key = map(str, server_files())
            mqtt.append({"address": f"127.0.0.1:{ports['mqtts']}", "tls": {"certificate": certificate, "key": key}})
        if "mqttws" in ports:
            mqtt.append({"address": f"127.0.0.1:{ports['mqttws']}", "websocket": "/mqtt"})
        env = {"PYTHONPATH": str(ROOT), "LMQ_MQTT__LISTEN": json.dumps(mqtt) if mqtt else "off"}
        return Server(spawn(command, folder, env), folder, {})

    return launch


# MQTT peers

WITH_TLS, WITH_WEBSOCKET = b"libssl.so", b"Sec-WebSocket-Accept"


def launch_null(folder: Path, ports: dict[str, int]) -> Server:
    """Start the relay that parses nothing."""
    command = [sys.executable, "-m", "tests.benchmarks.scenarios.null_relay", str(ports["mqtt"])]
    return Server(spawn(command, folder, {"PYTHONPATH": str(ROOT)}), folder, {})


def launch_mosquitto(folder: Path, ports: dict[str, int]) -> Server:
    """Start Mosquitto, which keeps all in memory."""
    (folder / "conf").write_text(
        f"listener {ports['mqtt']} 127.0.0.1\nallow_anonymous true\nuser {getpass.getuser()}\n"
        "max_queued_messages 0\nmax_inflight_messages 1000\nlog_type error\npersistence false\n"
    )
    return Server(spawn([str(find_program("mosquitto")), "-c", "conf"], folder), folder, {})


def find_mosquitto_with(part: bytes) -> str | None:
    """Return the path of a Mosquitto whose program has some bytes: of one that has TLS, or WebSocket; not all do."""
    for path in filter(None, (find_program("mosquitto"), shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin"))):
        if part in Path(path).read_bytes():
            return path
    return None


def mosquitto_version_with(part: bytes) -> Callable[[], str | None]:
    """Return how its version is found."""

    def find() -> str | None:
        path = find_mosquitto_with(part)
        return None if path is None else version_of(path, "-h")

    return find


def launch_mosquitto_websocket(folder: Path, ports: dict[str, int]) -> Server:
    """Start Mosquitto with WebSocket and without."""
    (folder / "conf").write_text(
        f"allow_anonymous true\nuser {getpass.getuser()}\nmax_queued_messages 0\nmax_inflight_messages 1000\n"
        f"log_type error\npersistence false\nlistener {ports['plain']} 127.0.0.1\n"
        f"listener {ports['mqttws']} 127.0.0.1\nprotocol websockets\n"
    )
    return Server(spawn([str(find_mosquitto_with(WITH_WEBSOCKET)), "-c", "conf"], folder), folder, {})


def launch_nats_websocket(folder: Path, ports: dict[str, int]) -> Server:
    """Start NATS with MQTT by WebSocket and without."""
    (folder / "conf").write_text(
        f'listen: "127.0.0.1:{ports["nats"]}"\nserver_name: one\njetstream {{ store_dir: "{folder}/data" }}\n'
        f'mqtt {{ listen: "127.0.0.1:{ports["plain"]}", max_ack_pending: 1000 }}\n'
        f'websocket {{ listen: "127.0.0.1:{ports["mqttws"]}", no_tls: true }}\n'
    )
    return Server(spawn([str(find_program("nats-server")), "-c", "conf"], folder), folder, {})


def launch_mosquitto_tls(folder: Path, ports: dict[str, int]) -> Server:
    """Start Mosquitto with TLS and without."""
    certificate, key = server_files()
    (folder / "conf").write_text(
        f"allow_anonymous true\nuser {getpass.getuser()}\nmax_queued_messages 0\nmax_inflight_messages 1000\n"
        f"log_type error\npersistence false\nlistener {ports['plain']} 127.0.0.1\n"
        f"listener {ports['mqtts']} 127.0.0.1\ncertfile {certificate}\nkeyfile {key}\n"
    )
    return Server(spawn([str(find_mosquitto_with(WITH_TLS)), "-c", "conf"], folder), folder, {})


def launch_nats_tls(folder: Path, ports: dict[str, int]) -> Server:
    """Start two servers of NATS, since one has one address for MQTT; the one with TLS is measured."""
    certificate, key = server_files()
    tls = f'tls {{ cert_file: "{certificate}", key_file: "{key}" }}'
    for door, also in (("plain", ""), ("mqtts", tls)):
        (folder / door).write_text(
            f'listen: "127.0.0.1:{ports[f"nats-{door}"]}"\nserver_name: {door}\n'
            f'jetstream {{ store_dir: "{folder}/data-{door}" }}\n'
            f'mqtt {{ listen: "127.0.0.1:{ports[door]}", max_ack_pending: 1000, {also} }}\n'
        )
    plain, secure = (spawn([str(find_program("nats-server")), "-c", door], folder) for door in ("plain", "mqtts"))
    return Server(secure, folder, {}, [plain])


def launch_nats(folder: Path, ports: dict[str, int]) -> Server:
    """Start NATS with JetStream, which its MQTT needs."""
    (folder / "conf").write_text(
        f'listen: "127.0.0.1:{ports["nats"]}"\nserver_name: bench\njetstream {{ store_dir: "{folder}/data" }}\n'
        f'mqtt {{ listen: "127.0.0.1:{ports["mqtt"]}", max_ack_pending: 1000 }}\n'
    )
    return Server(spawn([str(find_program("nats-server")), "-c", "conf"], folder), folder, {})


def launch_mochi(folder: Path, ports: dict[str, int]) -> Server:
    """Start mochi-mqtt's own program."""
    flags = [f"-{flag}=127.0.0.1:{ports[door]}" for flag, door in {"tcp": "mqtt", "ws": "ws", "info": "info"}.items()]
    return Server(spawn([str(find_program("mochi-mqtt")), *flags], folder), folder, {})


def launch_rumqttd(folder: Path, ports: dict[str, int]) -> Server:
    """Start rumqttd."""
    (folder / "conf.toml").write_text(
        "id = 0\n[router]\nmax_connections = 20000\nmax_outgoing_packet_count = 20000\nmax_segment_size = 104857600\n"
        f'max_segment_count = 10\n[v4.1]\nname = "v4-1"\nlisten = "127.0.0.1:{ports["mqtt"]}"\n'
        "next_connection_delay_ms = 0\n[v4.1.connections]\nconnection_timeout_ms = 60000\nmax_payload_size = 262144\n"
        "max_inflight_count = 1000\ndynamic_filters = true\n"
    )
    return Server(spawn([str(find_program("rumqttd")), "-c", "conf.toml", "-q"], folder), folder, {})


def launch_amqtt(folder: Path, ports: dict[str, int]) -> Server:
    """Start amqtt."""
    (folder / "conf.yaml").write_text(
        f"listeners:\n  default:\n    type: tcp\n    bind: 127.0.0.1:{ports['mqtt']}\n    max_connections: 20000\n"
        "plugins:\n  amqtt.plugins.authentication.AnonymousAuthPlugin:\n    allow_anonymous: true\n"
    )
    return Server(spawn([str(find_program("amqtt")), "-c", "conf.yaml"], folder), folder, {})


# RabbitMQ


def find_rabbitmq() -> str | None:
    """Return the version by the name of the folder that it is installed in."""
    found = sorted(RABBIT_SCRIPTS.parent.glob("lib/rabbitmq_server-*"))
    return found[-1].name.partition("-")[2] if found and (RABBIT_SCRIPTS / "rabbitmq-server").exists() else None


def launch_rabbitmq(folder: Path, ports: dict[str, int]) -> Server:
    """Start RabbitMQ with its MQTT door, as a node of its own with a port mapper of its own."""
    listeners = {"listeners.tcp.1": "amqp", "mqtt.listeners.tcp.1": "mqtt"}
    conf = [f"{key} = 127.0.0.1:{ports[door]}" for key, door in listeners.items()]
    conf += ["mqtt.allow_anonymous = true", "log.console.level = error", "disk_free_limit.absolute = 1GB"]
    (folder / "rabbit.conf").write_text("\n".join(conf) + "\n")
    (folder / "enabled_plugins").write_text("[rabbitmq_mqtt].\n")
    (folder / "env.conf").write_text("")
    env = {
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(ports["epmd"]),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODENAME": f"bench{ports['amqp']}@localhost",
        "RABBITMQ_DIST_PORT": str(ports["distribution"]),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "env.conf"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbit.conf"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
    }
    mapper = spawn([str(find_program("epmd")), "-port", str(ports["epmd"]), "-address", "127.0.0.1"], folder)
    return Server(spawn([str(RABBIT_SCRIPTS / "rabbitmq-server")], folder, env), folder, {}, [mapper])


# Apache RocketMQ


def find_rocketmq() -> str | None:
    """Return the version of the broker's archive where a Java is there too."""
    found = sorted((FETCHED / "rocketmq" / "lib").glob("rocketmq-broker-*.jar"))
    return found[-1].stem.rpartition("-")[2] if found and shutil.which("java") else None


def launch_rocketmq(flush: str, folder: Path, ports: dict[str, int]) -> Server:
    """Start the official broker with this `flushDiskType`, and a name server, which is not measured."""
    settings = {
        "brokerName": "bench",
        "brokerIP1": "127.0.0.1",
        "listenPort": ports["rocketmq"],
        "namesrvAddr": f"127.0.0.1:{ports['namesrv']}",
        "haListenPort": ports["ha"],
        "storePathRootDir": folder / "store",
        "autoCreateTopicEnable": "true",
        "flushDiskType": flush,
        "waitTimeMillsInSendQueue": 10_000,  # 200 ms refuses what a load with thousands in flight sends
        "enableLmq": "true",
        "enableMultiDispatch": "true",
        "maxLmqConsumeQueueNum": 2_000_000,
    }
    (folder / "conf").write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    (folder / "names").write_text(f"listenPort={ports['namesrv']}\n")
    classes = f"{FETCHED / 'rocketmq' / 'lib'}/*"
    names = ["java", "-Xmx256m", *JAVA_OPTIONS[2:], f"-Duser.home={folder}", "-cp", classes]
    names += ["org.apache.rocketmq.namesrv.NamesrvStartup", "-c", "names"]
    env = {"ROCKETMQ_HOME": str(folder)}
    name_server = spawn(names, folder, env)
    wait_until_up(Server(name_server, folder, {"namesrv": ports["namesrv"]}))  # a broker registers when it starts
    command = ["java", *JAVA_OPTIONS, f"-Duser.home={folder}", "-cp", classes]
    command += ["org.apache.rocketmq.broker.BrokerStartup", "-c", "conf"]
    return Server(spawn(command, folder, env), folder, {}, [name_server])


TLS = frozenset({"mqtts", "plain"})  # of MQTT, `plain` is what is measured beside it
WEBSOCKET = frozenset({"mqttws", "plain"})
ALL_DOORS = frozenset({"mqtt", "amqp", "rocketmq", "namesrv"}) | TLS | WEBSOCKET
MQTT = frozenset({"mqtt"})
ROCKETMQ = frozenset({"rocketmq", "namesrv"})
PEERS = {
    peer.name: peer
    for peer in (
        Peer("gateway", ALL_DOORS, lambda: VERSION, gateway("sync"), is_ours=True),
        Peer("gateway-async", ALL_DOORS, lambda: VERSION, gateway("async"), is_ours=True),
        Peer("null", MQTT, lambda: "-", launch_null),
        Peer("mosquitto", MQTT, lambda: version_of("mosquitto", "-h"), launch_mosquitto),
        Peer("mosquitto-tls", TLS, mosquitto_version_with(WITH_TLS), launch_mosquitto_tls),
        Peer("mosquitto-websocket", WEBSOCKET, mosquitto_version_with(WITH_WEBSOCKET), launch_mosquitto_websocket),
        Peer(
            "nats-websocket",
            WEBSOCKET,
            lambda: version_of("nats-server", "-v"),
            launch_nats_websocket,
            extra_ports=("nats",),
        ),
        Peer(
            "nats-tls",
            TLS,
            lambda: version_of("nats-server", "-v"),
            launch_nats_tls,
            extra_ports=("nats-plain", "nats-mqtts"),
        ),
        Peer("nats", MQTT, lambda: version_of("nats-server", "-v"), launch_nats, extra_ports=("nats",)),
        Peer("mochi", MQTT, built_version("mochi-mqtt"), launch_mochi, extra_ports=("ws", "info")),
        Peer("rumqttd", MQTT, lambda: version_of("rumqttd", "--version"), launch_rumqttd),
        Peer("amqtt", MQTT, lambda: version_of("amqtt", "--version"), launch_amqtt),
        Peer(
            "rabbitmq",
            frozenset({"mqtt", "amqp"}),
            find_rabbitmq,
            launch_rabbitmq,
            extra_ports=("epmd", "distribution"),
        ),
        Peer("rocketmq", ROCKETMQ, find_rocketmq, partial(launch_rocketmq, "SYNC_FLUSH"), extra_ports=("ha",)),
        Peer("rocketmq-async", ROCKETMQ, find_rocketmq, partial(launch_rocketmq, "ASYNC_FLUSH"), extra_ports=("ha",)),
    )
}
