import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;

import java.util.function.Consumer;

/** A member of the group of its topic's name, which prints what it gets until it is killed: NAMESRV TOPIC. */
public final class Member {
    public static void main(String[] args) throws Exception {
        Clients.namesrv = args[0];
        start(args[1], body -> System.out.println(new String(body)));
    }

    static DefaultMQPushConsumer start(String topic, Consumer<byte[]> take) throws Exception {
        DefaultMQPushConsumer consumer = Clients.consumer(topic);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> take.accept(message.getBody()));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }
}
