// A member of a group by Kafka's own consumer, in either protocol. It is asked and tells what the members in
// tests/groups/members do: one JSON line for everything that happens to it, stamped by the machine's monotonic clock.

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class GroupMember implements ConsumerRebalanceListener {
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private final Map<String, String> wish;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final Map<Integer, Long> uncommitted = new TreeMap<>();
    private volatile boolean going = false;
    private long lastCommit = System.nanoTime();

    public static void main(String[] arguments) throws Exception {
        Map<String, String> wish = new HashMap<>();
        for (int at = 0; at < arguments.length; at += 2) {
            wish.put(arguments[at].substring(2), arguments[at + 1]);
        }
        GroupMember member = new GroupMember(wish);
        CountDownLatch ended = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            member.going = true;
            try {
                ended.await();
            } catch (InterruptedException ignored) {
                return;
            }
        }));
        try {
            member.run();
        } finally {
            ended.countDown();
        }
    }

    private GroupMember(Map<String, String> wish) {
        this.wish = wish;
        Properties settings = new Properties();
        String protocol = wish.getOrDefault("protocol", "classic");
        settings.put("bootstrap.servers", wish.get("bootstrap"));
        settings.put("group.id", wish.get("group"));
        settings.put("client.id", wish.get("client-id"));
        settings.put("group.protocol", protocol);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        settings.put("fetch.max.wait.ms", "100");
        settings.put("metadata.max.age.ms", "2000");
        settings.put("reconnect.backoff.max.ms", "500");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        if (wish.containsKey("instance")) {
            settings.put("group.instance.id", wish.get("instance"));
        }
        if (protocol.equals("classic")) {
            settings.put("partition.assignment.strategy", ASSIGNORS.get(wish.getOrDefault("assignor", "range")));
            settings.put("session.timeout.ms", wish.getOrDefault("session-ms", "6000"));
            settings.put("heartbeat.interval.ms", "200");
        }
        consumer = new KafkaConsumer<>(settings);
    }

    private void run() {
        tell("started", "");
        consumer.subscribe(List.of(wish.get("topic")), this);
        long everyNanos = Long.parseLong(wish.getOrDefault("commit-every-ms", "0")) * 1_000_000;
        while (!going) {
            Map<Integer, List<long[]>> runs = new TreeMap<>();
            for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                List<long[]> known = runs.computeIfAbsent(record.partition(), any -> new ArrayList<>());
                if (!known.isEmpty() && known.get(known.size() - 1)[1] == record.offset() - 1) {
                    known.get(known.size() - 1)[1] = record.offset();
                } else {
                    known.add(new long[] {record.offset(), record.offset()});
                }
            }
            runs.forEach((partition, several) -> {
                for (long[] run : several) {
                    tell("handled", ", \"partition\": " + partition + ", \"first\": " + run[0] + ", \"last\": " + run[1]);
                    uncommitted.put(partition, run[1] + 1);
                }
            });
            if (!uncommitted.isEmpty() && System.nanoTime() - lastCommit >= everyNanos) {
                commit();
            }
        }
        commit();
        consumer.close();
        tell("closed", "");
    }

    private void commit() {
        if (uncommitted.isEmpty()) {
            return;
        }
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        uncommitted.forEach((partition, offset) ->
            offsets.put(new TopicPartition(wish.get("topic"), partition), new OffsetAndMetadata(offset)));
        StringJoiner told = new StringJoiner(", ", ", \"offsets\": {", "}");
        uncommitted.forEach((partition, offset) -> told.add("\"" + partition + "\": " + offset));
        try {
            consumer.commitSync(offsets);
            tell("committed", told.toString());
        } catch (KafkaException error) {
            tell("refused", told + ", \"why\": \"" + error.getClass().getSimpleName() + "\"");
        }
        uncommitted.clear();
        lastCommit = System.nanoTime();
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        tellOf("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        commit();
        tellOf("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        uncommitted.clear();
        tellOf("lost", partitions);
    }

    private void tellOf(String what, Collection<TopicPartition> partitions) {
        StringJoiner numbers = new StringJoiner(", ", ", \"partitions\": [", "]");
        partitions.forEach(place -> numbers.add(String.valueOf(place.partition())));
        tell(what, numbers.toString());
    }

    private static synchronized void tell(String what, String more) {
        System.out.println("{\"what\": \"" + what + "\", \"at\": " + System.nanoTime() / 1e9 + more + "}");
        System.out.flush();
    }
}
