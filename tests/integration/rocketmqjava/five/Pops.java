import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageRequestMode;

import java.util.LinkedHashMap;
import java.util.Map;

/** What clients before 5 do not have: NAMESRV COUNT ADMIN. */
public final class Pops {
    public static void main(String[] args) throws Exception {
        Clients.start(args[0]);
        Map<String, Clients.Scenario> scenarios = new LinkedHashMap<>();
        scenarios.put("recalled", Pops::recalled);
        scenarios.put("pop", Pops::pop);
        Clients.run(scenarios, Integer.parseInt(args[1]));
        Runtime.getRuntime().halt(0);
    }

    /** Two consumers that the broker has pop; each tenth message fails at its first attempt. */
    private static void pop(String topic, int count) throws Exception {
        Counts counts = new Counts();
        Clients.send(topic, Clients.bodies(topic, 0, count / 2), counts);
        String broker = Clients.producer.getDefaultMQProducerImpl().getMqClientFactory()
            .findBrokerAddressInPublish(Clients.producer.fetchPublishMessageQueues(topic).get(0).getBrokerName());
        Clients.producer.getDefaultMQProducerImpl().getMqClientFactory().getMQClientAPIImpl()
            .setMessageRequestMode(broker, topic, topic, MessageRequestMode.POP, 0, 3_000);
        DefaultMQPushConsumer[] consumers = {Clients.consumer(topic), Clients.consumer(topic)};
        for (DefaultMQPushConsumer consumer : consumers) {
            consumer.setClientRebalance(false);
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                String body = new String(messages.get(0).getBody());
                if (body.endsWith("0") && messages.get(0).getReconsumeTimes() == 0) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
                messages.forEach(message -> counts.came(message.getBody()));
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
        }
        Clients.send(topic, Clients.bodies(topic, count / 2, count), counts);
        counts.await();
        for (DefaultMQPushConsumer consumer : consumers) {
            consumer.shutdown();
        }
        counts.print("pop");
    }

    /** Every other timed message is taken back before its moment. */
    private static void recalled(String topic, int count) throws Exception {
        Counts counts = new Counts();
        Clients.producer.send(new Message(topic, (topic + " first").getBytes()));
        counts.sent(topic + " first");
        for (int n = 0; n < count; n++) {
            Message message = new Message(topic, (topic + " " + n).getBytes());
            message.setDelayTimeMs(3_000);
            String handle = Clients.producer.send(message).getRecallHandle();
            if (n % 2 == 0) {
                counts.sent(topic + " " + n);
            } else {
                Clients.producer.recallMessage(topic, handle);
            }
        }
        Clients.pull(topic, counts);
        counts.print("recalled");
    }
}
