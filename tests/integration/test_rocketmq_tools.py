"""RocketMQ's own tool, mqadmin, against a gateway that is a process of its own."""

from __future__ import annotations

import asyncio

import pytest

from lmq import Producer, PushConsumer
from tests.support.gateway import GatewayProcess
from tests.support.official_java import OPENED, needs_tools, run_java

pytestmark = [pytest.mark.slow, needs_tools]


async def send(namesrv: str) -> tuple[str, str]:
    async with Producer(namesrv) as producer:
        sent = [await producer.send("T", b"%d" % number, keys=[f"key{number}"], queue_id=0) for number in range(3)]
    return sent[0].msg_id, sent[0].key


def run_tools(folder, gateway, *commands: str, options: tuple[str, ...] = ()) -> dict[str, str]:
    """Run commands of mqadmin; return what each printed."""
    namesrv, broker = ("{}:{}".format(*gateway.address(name)) for name in ("namesrv", "broker"))
    lines = [f"{command} -n {namesrv}".replace("BROKER", broker) for command in commands]
    said = run_java(folder, "JavaTools.java", *lines, options=(*OPENED, *options))
    found: dict[str, str] = {}
    for part in said.split("\n== ")[1:]:
        line, _, text = part.partition("\n")
        text = "\n".join(one for one in text.splitlines() if "|-INFO" not in one and "|-WARN" not in one)
        found[line.rpartition(" -n ")[0].replace(broker, "BROKER")] = text
    return found


def test_each_command_does_what_it_is_for(tmp_path):
    with GatewayProcess(tmp_path / "data") as gateway:
        offset_id, message_id = asyncio.run(send("{}:{}".format(*gateway.address("namesrv"))))
        wanted = {
            "clusterList": "V5_4_0",
            "topicList": "T",
            "topicRoute -t T": '"queueDatas"',
            "topicStatus -t T": "#Max Offset",
            "updateTopic -b BROKER -t Made -r 3 -w 3": "create topic to",
            "updateTopic -b BROKER -t Ordered -o true": "isOrder=true",
            "updateTopic -b BROKER -t Typed -a +message.type=FIFO": "attributes={+message.type=FIFO}",
            "topicList -c": "Made",
            "deleteTopic -c DefaultCluster -t Made": "delete topic [Made] from NameServer success",
            "topicRoute -t Made": "No topic route info in name server for the topic: Made",
            "updateSubGroup -b BROKER -g made": "create subscription group to",
            "consumeMessage -t T -g readers": "BODY: 2\nMessageQueue [topic=T, brokerName=lmq, queueId=0] print msg "
            "finished. status=NO_NEW_MSG, offset=3",
            "resetOffsetByTime -g made -t T -s 0": "#offset",
            "consumerProgress -g made": "Consume Diff Total: 3",
            "consumerProgress": "made",
            "consumerConnection -g made": "CODE: 206",  # nobody is connected, as official brokers say it
            "producerConnection -g makers -t T": "the producer group[makers] not exist",
            "brokerStatus -b BROKER": "msgPutTotalTodayNow             : 3",
            f"queryMsgById -t T -i {offset_id}": "Keys:                [key0]",
            "queryMsgByKey -t T -k key1": "K@key1@",
            f"queryMsgByUniqueKey -t T -i {message_id}": "Keys:                [key0]",
            "printMsg -t T -d true": "BODY: 2",
            "sendMessage -t T -p body": "SEND_OK",
            "getBrokerConfig -b BROKER": "autoCreateTopicEnable",
            "updateBrokerConfig -b BROKER -k autoCreateTopicEnable -v false": "update broker config success",
            "updateBrokerConfig -b BROKER -k listenPort -v 1": "cannot be changed while the broker runs",
            "cloneGroupOffset -s made -d others -t T": "clone group offset success",
            "cleanExpiredCQ -b BROKER": "success",
            "deleteExpiredCommitLog -b BROKER": "success",
            "cleanUnusedTopic -b BROKER": "success",
            "statsAll": "#Accumulation",
            "updateKvConfig -s space -k key -v value": "success",
            "deleteKvConfig -s space -k key": "success",
            "brokerConsumeStats -b BROKER": "Diff Total: ",
            "queryCq -t T -q 0 -i 0 -c 2": ", min: 0",
            "haStatus -b BROKER": "#SlaveNum\t0",
            "wipeWritePerm -b lmq": "wipe write perm of broker[lmq] in name server",
            "addWritePerm -b lmq": "add write perm of broker[lmq] in name server",
            "exportPopRecord -b BROKER": "Export broker records",
            "updateBrokerConfig -b BROKER -k messageDelayLevel -v 2s": "update broker config success",
            "deleteSubGroup -b BROKER -g made": "success",
        }
        said = run_tools(tmp_path, gateway, *wanted)
        wrong = {command: said.get(command) for command, text in wanted.items() if text not in said.get(command, "")}
        assert not wrong


SETTINGS = """
[auth]
rocketmq_anonymous = false
[auth.users.root]
secret = "root's own secret"
tags = ["administrator"]
"""


def test_users_and_access_lists_are_made_by_an_administrator(tmp_path):
    (tmp_path / "lmq.toml").write_text(SETTINGS)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "tools.yml").write_text("accessKey: root\nsecretKey: root's own secret\n")
    wanted = {
        "createUser -b BROKER -u ann -p 12345678 -t Normal": "create user to",
        "createUser -b BROKER -u ann -p 12345678": "The user is existed",
        "updateUser -b BROKER -u ann -p 87654321": "update user to",
        "getUser -b BROKER -u ann": "Normal",
        "listUser -b BROKER": "ann",
        "createAcl -b BROKER -s User:ann -r Topic:T,Group:g -a Pub,Sub -i 127.0.0.0/8 -d Allow": "create acl to",
        "updateAcl -b BROKER -s User:ann -r Topic:T -a Pub -d Deny": "update acl to",
        "getAcl -b BROKER -s User:ann": "Group:g",
        "listAcl -b BROKER": "Deny",
        "deleteAcl -b BROKER -s User:ann -r Topic:T": "delete acl to",
        "deleteAcl -b BROKER -s User:ann": "delete acl to",
        "deleteUser -b BROKER -u ann": "delete user to",
    }
    with GatewayProcess(tmp_path / "data", "--config", str(tmp_path / "lmq.toml")) as gateway:
        said = run_tools(tmp_path, gateway, *wanted, options=(f"-Drocketmq.home.dir={tmp_path}",))
    wrong = {command: said.get(command) for command, text in wanted.items() if text not in said.get(command, "")}
    assert not wrong


@pytest.mark.asyncio
async def test_consumers_of_the_sdk_tell_of_themselves_and_consume_by_hand(tmp_path):
    heard = []

    async def handle(messages, _context):
        heard.append(messages[0].body)

    with GatewayProcess(tmp_path / "data") as gateway:
        namesrv = "{}:{}".format(*gateway.address("namesrv"))
        offset_id, _ = await send(namesrv)
        async with (
            Producer(namesrv, "makers", client_id="sender@1") as producer,
            PushConsumer(namesrv, "workers", handle, consume_from="first", client_id="me@1") as consumer,
        ):
            await producer.send("T", b"of none of its tags")
            consumer.subscribe("T", "a || b")
            while not consumer.assigned:
                await asyncio.sleep(0.01)
            wanted = {
                "consumerStatus -g workers": "me@1",
                "consumerStatus -g workers -i me@1 -s": "PROP_CONSUME_TYPE                       : CONSUME_PASSIVELY",
                "consumerStatus -g workers -i me@1": "#Consumer MQ Detail#",
                f"queryMsgById -t T -i {offset_id} -g workers -d me@1": "CR_SUCCESS",
                "consumerConnection -g workers": "me@1",
                "producerConnection -g makers -t T": "sender@1",
            }
            said = await asyncio.to_thread(run_tools, tmp_path, gateway, *wanted)
    wrong = {command: said.get(command) for command, text in wanted.items() if text not in said.get(command, "")}
    assert not wrong
    assert heard == [b"0"]
