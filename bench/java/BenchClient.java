/*
 * What Kafka's own tools cannot do here: consume assigned partitions for a fixed time (kafka-consumer-perf-test joins a
 * group), and measure the latency of one message in flight finer than a millisecond with the warm-up left out
 * (kafka-e2e-latency counts whole milliseconds, from the first message of a cold JVM on), and the latency at a fixed
 * rate from the moment a record should have been sent, so that a stall counts for all who would have come during it.
 * Client settings are those of the two tools, and the defaults for the third.
 *
 *   BenchClient consume BOOTSTRAP TOPIC WARMUP_SECONDS SECONDS
 *   BenchClient latency BOOTSTRAP TOPIC WARMUP_MESSAGES MESSAGES MESSAGE_BYTES
 *   BenchClient paced BOOTSTRAP TOPIC RATE WARMUP_SECONDS SECONDS MESSAGE_BYTES
 *
 * Prints one JSON object a line: {"event": "begin"} when the measured time starts, {"event": "end", ...} when it is over.
 */
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class BenchClient {
    private long records = 0;
    private long valueBytes = 0;

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("consume")) {
            new BenchClient().consume(arguments[1], arguments[2],
                Double.parseDouble(arguments[3]), Double.parseDouble(arguments[4]));
        } else if (arguments[0].equals("paced")) {
            paced(arguments[1], arguments[2], Integer.parseInt(arguments[3]), Double.parseDouble(arguments[4]),
                Double.parseDouble(arguments[5]), Integer.parseInt(arguments[6]));
        } else {
            latency(arguments[1], arguments[2], Integer.parseInt(arguments[3]),
                Integer.parseInt(arguments[4]), Integer.parseInt(arguments[5]));
        }
    }

    private void consume(String bootstrap, String topic, double warmupSeconds, double seconds) {
        Properties properties = consumerProperties(bootstrap);
        properties.put("receive.buffer.bytes", "2097152");
        properties.put("max.partition.fetch.bytes", "1048576");
        properties.put("check.crcs", "false");
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties)) {
            List<TopicPartition> partitions = assigned(consumer, topic);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            consumer.seekToBeginning(partitions);
            readFor(warmupSeconds, consumer, ends);
            records = 0;
            valueBytes = 0;
            System.out.println("{\"event\": \"begin\"}");
            double elapsed = readFor(seconds, consumer, ends);
            System.out.printf(Locale.ROOT, "{\"event\": \"end\", \"seconds\": %.6f, \"records\": %d, \"bytes\": %d}%n",
                elapsed, records, valueBytes);
        }
    }

    /** Reads round and round: a partition that was read to its end starts again from its beginning. */
    private double readFor(double seconds, KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> ends) {
        long begin = System.nanoTime();
        long deadline = begin + (long) (seconds * 1e9);
        while (System.nanoTime() < deadline) {
            ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(100));
            for (TopicPartition partition : polled.partitions()) {
                List<ConsumerRecord<byte[], byte[]>> read = polled.records(partition);
                for (ConsumerRecord<byte[], byte[]> record : read) {
                    valueBytes += record.value().length;
                }
                records += read.size();
                if (read.get(read.size() - 1).offset() + 1 >= ends.get(partition)) {
                    consumer.seek(partition, 0);
                }
            }
        }
        return (System.nanoTime() - begin) / 1e9;
    }

    private static void latency(String bootstrap, String topic, int warmup, int messages, int messageBytes)
            throws Exception {
        Properties consumerProperties = consumerProperties(bootstrap);
        consumerProperties.put("fetch.max.wait.ms", "0");
        Properties producerProperties = producerProperties(bootstrap);
        producerProperties.put("acks", "1");
        producerProperties.put("linger.ms", "0");
        long[] latencies = new long[messages];
        byte[] value = new byte[messageBytes];
        new Random(0).nextBytes(value);
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(consumerProperties);
             KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(producerProperties)) {
            List<TopicPartition> partitions = assigned(consumer, topic);
            consumer.seekToEnd(partitions);
            partitions.forEach(consumer::position);
            for (int index = -warmup; index < messages; index++) {
                if (index == 0) {
                    System.out.println("{\"event\": \"begin\"}");
                }
                long begin = System.nanoTime();
                producer.send(new ProducerRecord<>(topic, value)).get();
                int arrived = consumer.poll(Duration.ofSeconds(60)).count();
                long elapsed = System.nanoTime() - begin;
                if (arrived != 1) {
                    throw new IllegalStateException("expected the one message in flight, got " + arrived);
                }
                if (index >= 0) {
                    latencies[index] = elapsed;
                }
            }
        }
        Arrays.sort(latencies);
        System.out.printf(Locale.ROOT, "{\"event\": \"end\", \"p50_ms\": %.6f, \"p99_ms\": %.6f, \"p999_ms\": %.6f}%n",
            percentile(latencies, 0.5), percentile(latencies, 0.99), percentile(latencies, 0.999));
    }

    /**
     * One thread sends record number n when its time has come, n / rate after the first, however late the ones before
     * it were; this one receives. The record carries the time it should have been sent.
     */
    private static void paced(String bootstrap, String topic, int rate, double warmupSeconds, double seconds,
            int messageBytes) throws Exception {
        int warmup = (int) (rate * warmupSeconds);
        int messages = (int) (rate * seconds);
        long[] latencies = new long[messages];
        Properties producerProperties = producerProperties(bootstrap);
        producerProperties.put("acks", "all");
        int arrived = 0;
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(consumerProperties(bootstrap));
             KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(producerProperties)) {
            List<TopicPartition> partitions = assigned(consumer, topic);
            consumer.seekToEnd(partitions);
            partitions.forEach(consumer::position);
            producer.partitionsFor(topic);
            long begin = System.nanoTime() + 100_000_000L;
            Thread sender = new Thread(() -> send(producer, topic, begin, rate, warmup + messages, messageBytes));
            sender.start();
            boolean measuring = false;
            long measuredFrom = begin + (long) (warmup * 1e9 / rate);
            long givenUp = measuredFrom + (long) ((seconds + 60) * 1e9);
            while (arrived < messages && System.nanoTime() < givenUp) {
                ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(100));
                long now = System.nanoTime();
                if (!measuring && now >= measuredFrom) {
                    measuring = true;
                    System.out.println("{\"event\": \"begin\"}");
                }
                for (ConsumerRecord<byte[], byte[]> record : polled) {
                    long intended = ByteBuffer.wrap(record.value()).getLong();
                    if (intended >= measuredFrom && arrived < messages) {
                        latencies[arrived++] = now - intended;
                    }
                }
            }
            sender.join();
        }
        if (arrived < messages) {
            throw new IllegalStateException((messages - arrived) + " records of " + messages + " never arrived");
        }
        Arrays.sort(latencies);
        System.out.printf(Locale.ROOT,
            "{\"event\": \"end\", \"p50_ms\": %.6f, \"p99_ms\": %.6f, \"p999_ms\": %.6f, \"max_ms\": %.6f}%n",
            percentile(latencies, 0.5), percentile(latencies, 0.99), percentile(latencies, 0.999),
            percentile(latencies, 1.0));
    }

    private static void send(KafkaProducer<byte[], byte[]> producer, String topic, long begin, int rate, int messages,
            int messageBytes) {
        byte[] noise = new byte[messageBytes];
        new Random(0).nextBytes(noise);
        for (int index = 0; index < messages; index++) {
            long intended = begin + (long) (index * 1e9 / rate);
            for (long early = intended - System.nanoTime(); early > 0; early = intended - System.nanoTime()) {
                LockSupport.parkNanos(early);
            }
            byte[] value = noise.clone();
            ByteBuffer.wrap(value).putLong(intended);
            producer.send(new ProducerRecord<>(topic, value));
        }
    }

    private static double percentile(long[] sorted, double share) {
        return sorted[Math.min(sorted.length - 1, (int) (sorted.length * share))] / 1e6;
    }

    private static List<TopicPartition> assigned(KafkaConsumer<byte[], byte[]> consumer, String topic) {
        List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
            .map(info -> new TopicPartition(info.topic(), info.partition()))
            .collect(Collectors.toList());
        consumer.assign(partitions);
        return partitions;
    }

    private static Properties producerProperties(String bootstrap) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("key.serializer", ByteArraySerializer.class.getName());
        properties.put("value.serializer", ByteArraySerializer.class.getName());
        return properties;
    }

    private static Properties consumerProperties(String bootstrap) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("key.deserializer", ByteArrayDeserializer.class.getName());
        properties.put("value.deserializer", ByteArrayDeserializer.class.getName());
        properties.put("enable.auto.commit", "false");
        return properties;
    }
}
