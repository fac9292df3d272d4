import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

import java.util.Random;
import java.util.concurrent.CountDownLatch;

/**
 * A push consumer of the official client that the broker has pop: NAMESRV TOPIC GROUP works|hangs|fails.
 *
 * It prints each message that it is done with, one that fails when it is given for the second time.
 */
public class JavaPop {
    public static void main(String[] args) throws Exception {
        String manner = args[3];
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(args[2]);
        consumer.setNamesrvAddr(args[0]);
        consumer.setInstanceName(manner + new Random().nextInt(1 << 30));
        consumer.setClientRebalance(false);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPopInvisibleTime(5_000);
        consumer.setConsumeThreadMin(1);
        consumer.setConsumeThreadMax(1);
        consumer.setPopBatchNums(8);
        consumer.subscribe(args[1], "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt message : messages) {
                if (manner.equals("hangs")) {
                    System.out.println("hung " + new String(message.getBody()));
                    System.out.flush();
                    waitForever();
                }
                if (manner.equals("fails") && message.getReconsumeTimes() == 0) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
                System.out.println("done " + new String(message.getBody()) + " " + message.getReconsumeTimes()
                    + " " + message.getTopic());
                System.out.flush();
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        System.out.println("started");
        System.out.flush();
        waitForever();
    }

    private static void waitForever() {
        try {
            new CountDownLatch(1).await();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
