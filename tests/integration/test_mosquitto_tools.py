"""mosquitto_pub, mosquitto_sub and mosquitto_rr, by every option that they have; each works, or says why it cannot.

What is left out is between the tool and others than a broker: --help, --proxy (SOCKS), -S (SRV records), --capath,
--keyform and --tls-engine (where a key is). With --psk the tool takes a certificate where no keys are shared, as here.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time

import pytest

from tests.support.certificates import authority_file, client_files, server_files
from tests.support.gateway import ANY_PORT, GatewayProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("mosquitto_rr") is None, reason="mosquitto's tools are not installed"),
]

WAIT_S = 20
HASH = "pbkdf2-sha256$1$c2FsdHNhbHRzYWx0c2FsdA==$hPrpFC09AsODBXTe1LuwU3XYPvr5/UeP7oi4Sff7rz8="  # of "p"
ALL = ("-c", "-i", "collector", "-t", "pub/#", "-q", "2")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mosquitto")
    certificate, key = server_files()
    tls = {"certificate": str(certificate), "key": str(key)}
    listen = [ANY_PORT, {"address": ANY_PORT, "tls": tls}, f"unix:{folder}/mqtt.sock"]
    users = {"alice": {"password_hash": HASH}}
    env = {"LMQ_MQTT__LISTEN": json.dumps(listen), "LMQ_AUTH__USERS": json.dumps(users)}
    with GatewayProcess(folder / "data", env=env, doors=("amqp", "namesrv", "broker", "admin")) as running:
        running.folder = folder
        yield running
        assert not any("Traceback" in line for line in running.errors), "".join(running.errors)


@pytest.fixture
def run(gateway):
    """Run a tool against the gateway; return what it printed, or its exit code where that is expected."""

    def call(tool, *options, stdin=None, to="tcp", fails=False):
        where = {
            "tcp": ("-h", "127.0.0.1", "-p", str(gateway.port("mqtt"))),
            "tls": ("-h", "127.0.0.1", "-p", str(gateway.port("mqtts"))),
            "unix": ("--unix", f"{gateway.folder}/mqtt.sock"),
            "": (),
        }[to]
        command = [shutil.which(f"mosquitto_{tool}"), *where, *options]
        done = subprocess.run(command, check=False, timeout=WAIT_S, capture_output=True, text=True, input=stdin)
        if fails:
            assert done.returncode, done
            return done.stderr + done.stdout
        assert done.returncode == 0, (command, done)
        return done.stdout

    return call


def test_mosquitto_pub_by_every_option(gateway, run, tmp_path):
    run("sub", *ALL, "-E")
    wanted = []

    def pub(*options, bodies=("x",), qos=0, **how):
        topic = f"pub/{len(wanted)}"
        run("pub", *(("-t", topic) if "-L" not in options else ()), *options, **how)
        wanted.extend(f"{topic} {qos} 0 {body}" for body in bodies)

    text = ("-m", "x")
    file = tmp_path / "body"
    file.write_text("from a file")
    for qos in (0, 1, 2):
        pub(*text, "-q", str(qos), qos=qos)
    pub("-n", bodies=[""])
    pub("-f", str(file), bodies=["from a file"])
    pub("-s", stdin="all of it", bodies=["all of it"])
    pub("-l", "-q", "1", "-M", "2", stdin="".join(f"{i}\n" for i in range(9)), qos=1, bodies=map(str, range(9)))
    pub(*text, "--repeat", "3", "--repeat-delay", "0.01", bodies=["x"] * 3)
    pub(*text, "-c", "-i", "pub-stays", "-q", "1", qos=1)
    for options in (("-I", "prefix-"), ("-k", "5"), ("-A", "127.0.0.1"), ("--nodelay",), ("--quiet",), ("-d",)):
        pub(*text, *options)
    for version in ("mqttv31", "mqttv311", "mqttv5"):
        pub(*text, "-V", version)
    pub(*text, "-V", "5", "-c", "-i", "pub-60", "-x", "60")
    pub(*text, "-u", "alice", "-P", "p")
    pub(*text, "-L", f"mqtt://alice:p@127.0.0.1:{gateway.port('mqtt')}/pub/{len(wanted)}", to="")
    pub(*text, "--will-topic", "pub/will", "--will-payload", "gone", "--will-qos", "1", "--will-retain")
    pub(*text, to="unix")
    trust = ("--cafile", str(authority_file()))
    certificate, key = client_files()
    for options in (
        (),
        ("--insecure",),
        ("--tls-version", "tlsv1.2"),
        ("--tls-version", "tlsv1.3"),
        ("--tls-alpn", "mqtt"),
        ("--ciphers", "ECDHE+AESGCM"),
        ("--cert", str(certificate), "--key", str(key)),
    ):
        pub(*text, *trust, *options, to="tls")
    lines = run("sub", *ALL, "-C", str(len(wanted)), "-F", "%t %q %r %p").splitlines()
    assert sorted(lines) == sorted(wanted)  # the tool prints what came at QoS 2 with its PUBREL
    run("pub", "-t", "kept", "-m", "x", "-r")
    assert run("sub", "-t", "kept", "--retained-only", "-C", "1", "-F", "%p %r") == "x 1\n"


def test_mosquitto_pub_is_told_why_it_is_refused(run):
    text = ("-t", "t", "-m", "x")
    assert "bad user name or password" in run("pub", *text, "-u", "alice", "-P", "wrong", fails=True)
    assert run("pub", *text, "--tls-use-os-certs", to="tls", fails=True)  # ours is signed by nobody that they know
    refused = run("pub", "-V", "5", "-q", "1", "-d", "-t", "$share/g/t", "-m", "x")
    assert "RC:135" in refused


def test_mosquitto_pub_sends_each_property(run):
    session = ("-V", "5", "-c", "-x", "60", "-i", "properties", "-t", "p5", "-q", "1")
    run("sub", *session, "-E")
    given = {
        "payload-format-indicator": ["1"],
        "message-expiry-interval": ["1000"],
        "content-type": ["a/b"],
        "response-topic": ["r/t"],
        "correlation-data": ["c"],
        "topic-alias": ["3"],
        "user-property": ["k", "v"],
    }
    options = [part for name, values in given.items() for part in ("-D", "publish", name, *values)]
    more = ("-D", "connect", "receive-maximum", "5", "-D", "connect", "maximum-packet-size", "1000")
    end = ("-D", "disconnect", "session-expiry-interval", "0", "-D", "connect", "session-expiry-interval", "9")
    run("pub", "-V", "5", "-t", "p5", "-m", "x", "-q", "1", *options, *more, *end)
    (line,) = run("sub", *session, "-C", "1", "-F", "%j").splitlines()
    found = json.loads(line)["properties"]
    assert found.pop("message-expiry-interval") in range(990, 1001)
    assert found == {
        "payload-format-indicator": 1,
        "content-type": "a/b",
        "response-topic": "r/t",
        "correlation-data": "c",
        "user-properties": {"k": "v"},
    }


def test_mosquitto_sub_by_every_option(gateway, run, tmp_path):
    for topic in ("keep/a", "keep/b"):
        run("pub", "-t", topic, "-m", topic[-1], "-r", "-q", "1")
    both = ("-t", "keep/#", "-q", "1", "-C", "2")
    assert run("sub", *both) == "a\nb\n"
    assert run("sub", *both, "-N") == "ab"
    assert run("sub", *both, "-v") == "keep/a a\nkeep/b b\n"
    assert run("sub", "-t", "keep/a", "-t", "keep/b", "-C", "2", "-T", "keep/c") == "a\nb\n"
    assert run("sub", "-t", "keep/#", "-T", "keep/a", "-C", "1") == "b\n"
    assert run("sub", *both, "--random-filter", "50") in {"a\nb\n", "a\n", "b\n", ""}  # by chance
    assert json.loads(run("sub", "-t", "keep/a", "-C", "1", "-F", "%j"))["payload"] == "a"
    assert run("sub", "-t", "keep/a", "-C", "1", "-F", "%j", "--pretty").count("\n") > 3
    for options in (
        ("-k", "5"),
        ("-A", "127.0.0.1"),
        ("-I", "p-"),
        ("--nodelay",),
        ("--quiet",),
        ("-u", "alice", "-P", "p"),
        ("-V", "mqttv31"),
        (
            "-V",
            "mqttv5",
            "-D",
            "subscribe",
            "subscription-identifier",
            "7",
            "-D",
            "subscribe",
            "user-property",
            "k",
            "v",
        ),
        ("--will-topic", "w", "--will-payload", "gone", "--will-qos", "2", "--will-retain"),
    ):
        assert run("sub", "-t", "keep/a", "-C", "1", *options) == "a\n"
    assert "SUBACK" in run("sub", "-t", "keep/a", "-C", "1", "-d")
    assert run("sub", "-L", f"mqtt://127.0.0.1:{gateway.port('mqtt')}/keep/a", "-C", "1", to="") == "a\n"
    assert run("sub", "-t", "keep/a", "-C", "1", to="unix") == "a\n"
    assert run("sub", "-t", "keep/a", "-C", "1", "--cafile", str(authority_file()), to="tls") == "a\n"
    began = time.monotonic()
    assert "imed out" in run("sub", "-t", "keep/#", "-R", "-W", "1", fails=True)  # what is stale is not printed
    assert time.monotonic() - began < WAIT_S
    stays = ("-c", "-i", "stays", "-q", "1")
    run("sub", *stays, "-t", "later/1", "-t", "later/2", "-E")
    run("sub", *stays, "-t", "later/3", "-U", "later/1", "-E")
    for number in ("1", "2", "3"):
        run("pub", "-t", f"later/{number}", "-m", number, "-q", "1")
    assert run("sub", *stays, "-t", "later/3", "-C", "2") == "2\n3\n"
    run("sub", "-t", "keep/#", "--remove-retained", "-W", "1", fails=True)  # with -C it does not end, at any broker
    assert run("sub", "-t", "keep/#", "--retained-only", "-W", "1", fails=True) == "Timed out\n"  # nothing is left


def test_mosquitto_rr_asks_and_is_answered(gateway, run):
    command = [shutil.which("mosquitto_sub"), "-p", str(gateway.port("mqtt")), "-h", "127.0.0.1", "-V", "5"]
    listening = [*command, "-t", "ask", "-C", "1", "-F", "%R|%D", "-c", "-x", "60", "-i", "answerer", "-q", "1"]
    subprocess.run([*listening, "-E"], check=True, timeout=WAIT_S)
    ask = [shutil.which("mosquitto_rr"), *command[1:], "-t", "ask", "-e", "answers", "-m", "?", "-q", "1", "-W", "15"]
    with subprocess.Popen(ask, stdout=subprocess.PIPE, text=True) as asking:
        told = subprocess.run(listening, check=True, timeout=WAIT_S, capture_output=True, text=True).stdout
        topic, _, _ = told.strip().partition("|")
        assert topic == "answers"
        run("pub", "-V", "5", "-t", topic, "-m", "!", "-q", "1")
        assert asking.communicate(timeout=WAIT_S)[0] == "!\n"
