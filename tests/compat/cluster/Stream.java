// Kafka's producer and consumer at once: one sends numbers at a steady pace, the other reads as they come.
//
// Arguments: bootstrap, topic, number of partitions, how many records, how many a second, then settings of either client as
// producer.name=value or consumer.name=value. Records go round the partitions; their values are 0, 1, 2, …, their keys long.
// Prints "sent <value> <partition> <offset>" and "failed <value> <error>" for each record sent, "read <value> <partition>
// <offset>" for each one read, in order; and at the end, for each broker, "from <broker> <bytes>" it was read from. The
// consumer stops when it has read everything that was acknowledged, or when nothing more comes.

import java.time.Duration;
import java.util.Collections;
import java.util.HashSet;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

public class Stream {
    private static final String KEY = "k".repeat(200);
    private static final long NOTHING_MORE_COMES_NANOS = 30_000_000_000L;

    private final String topic;
    private final int partitions;
    private final int count;
    private final int rate;
    private final Set<String> acknowledged = Collections.synchronizedSet(new HashSet<>());
    private volatile boolean allSent;

    private Stream(String[] arguments) {
        topic = arguments[1];
        partitions = Integer.parseInt(arguments[2]);
        count = Integer.parseInt(arguments[3]);
        rate = Integer.parseInt(arguments[4]);
    }

    public static void main(String[] arguments) throws Exception {
        Stream stream = new Stream(arguments);
        CountDownLatch reading = new CountDownLatch(1);
        Thread reader = new Thread(() -> stream.read(settings(arguments, "consumer."), reading));
        reader.start();
        reading.await();
        stream.send(settings(arguments, "producer."));
        reader.join();
        System.exit(0);
    }

    private void send(Properties settings) throws InterruptedException {
        settings.put("key.serializer", StringSerializer.class.getName());
        settings.put("value.serializer", StringSerializer.class.getName());
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings)) {
            long began = System.nanoTime();
            for (int number = 0; number < count; number++) {
                long due = began + number * 1_000_000_000L / rate;
                while (System.nanoTime() < due) {
                    Thread.sleep(1);
                }
                String value = Integer.toString(number);
                producer.send(new ProducerRecord<>(topic, number % partitions, KEY, value), (place, problem) -> {
                    if (problem != null) {
                        System.out.println("failed " + value + " " + problem);
                    } else {
                        acknowledged.add(value);
                        System.out.println("sent " + value + " " + place.partition() + " " + place.offset());
                    }
                });
            }
        }
        allSent = true;
    }

    private void read(Properties settings, CountDownLatch reading) {
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.put("auto.offset.reset", "none");
        settings.put("enable.auto.commit", "false");
        Set<TopicPartition> all =
            IntStream.range(0, partitions).mapToObj(number -> new TopicPartition(topic, number)).collect(Collectors.toSet());
        Set<String> found = new HashSet<>();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(all);
            consumer.seekToBeginning(all);
            all.forEach(consumer::position);
            reading.countDown();
            long last = System.nanoTime();
            while (!(allSent && found.containsAll(acknowledged)) && System.nanoTime() < last + NOTHING_MORE_COMES_NANOS) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    found.add(record.value());
                    last = System.nanoTime();
                    System.out.println("read " + record.value() + " " + record.partition() + " " + record.offset());
                }
            }
            for (Map.Entry<MetricName, ? extends Metric> each : consumer.metrics().entrySet()) {
                MetricName name = each.getKey();
                String node = name.tags().getOrDefault("node-id", "");
                if (name.name().equals("incoming-byte-total") && node.matches("node-\\d")) {
                    long bytes = ((Double) each.getValue().metricValue()).longValue();
                    System.out.println("from " + node.substring(5) + " " + bytes);
                }
            }
        } catch (RuntimeException problem) {
            System.out.println("problem " + problem);
            reading.countDown();
        }
    }

    private static Properties settings(String[] arguments, String side) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        for (int place = 5; place < arguments.length; place++) {
            String[] pair = arguments[place].split("=", 2);
            if (pair[0].startsWith(side)) {
                settings.put(pair[0].substring(side.length()), pair[1]);
            }
        }
        return settings;
    }
}
