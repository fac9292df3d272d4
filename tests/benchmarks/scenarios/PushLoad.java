import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.LongAdder;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;

/** Official push consumers, one of each of some groups, that print how many messages their listeners had until now. */
public class PushLoad {
    private static final int BATCH = 32;
    private static final int PRINT_MS = 10;

    public static void main(String[] arguments) throws Exception {
        String namesrv = arguments[0];
        String topic = arguments[1];
        List<LongAdder> received = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(arguments[2]); number++) {
            LongAdder count = new LongAdder();
            received.add(count);
            DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("bench" + number);
            consumer.setNamesrvAddr(namesrv);
            consumer.setInstanceName("bench" + number);
            consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
            consumer.setPullBatchSize(BATCH);
            consumer.setConsumeMessageBatchMaxSize(BATCH);
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                count.add(messages.size());
                return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
            });
            consumer.start();
        }
        while (true) {
            StringBuilder line = new StringBuilder("received");
            for (LongAdder count : received) {
                line.append(' ').append(count.sum());
            }
            System.out.println(line);
            Thread.sleep(PRINT_MS);
        }
    }
}
