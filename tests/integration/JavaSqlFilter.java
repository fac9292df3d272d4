import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

import java.util.concurrent.CountDownLatch;

/** Sends messages 0 to 19 with a property n and consumes those that a filter wants: NAMESRV FILTER COUNT. */
public class JavaSqlFilter {
    public static void main(String[] args) throws Exception {
        Thread.currentThread().setUncaughtExceptionHandler((thread, error) -> {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);  // else the client's own threads keep the process
        });
        DefaultMQProducer producer = new DefaultMQProducer("senders");
        producer.setNamesrvAddr(args[0]);
        producer.start();
        for (int number = 0; number < 20; number++) {
            Message message = new Message("Numbers", number % 2 == 0 ? "even" : "odd", ("" + number).getBytes());
            message.putUserProperty("n", "" + number);
            producer.send(message);
        }
        CountDownLatch left = new CountDownLatch(Integer.parseInt(args[2]));
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("filterers");
        consumer.setNamesrvAddr(args[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("Numbers", MessageSelector.bySql(args[1]));
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(message -> {
                System.out.println("got " + new String(message.getBody()));
                left.countDown();
            });
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        left.await();
        Runtime.getRuntime().halt(0);
    }
}
