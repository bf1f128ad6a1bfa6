// Kafka's own tools, and Kafka's own client, in one process: a JVM takes seconds to start and a test run needs many tools.
//
// Reads one line a call from its input: the file the tool gets as its standard input ("-" for none), the tool's class, its
// arguments; tab-separated, percent-encoded. Answers with one line: exit code, what the tool printed, what it complained
// about; tab-separated, the latter two in base64. A tool that calls exit() ends its call and not the process.

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.Exit;

public class Tools {
    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        BufferedReader calls = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        Captured printed = new Captured();
        Captured complained = new Captured();
        System.setOut(new PrintStream(printed, true));
        System.setErr(new PrintStream(complained, true));
        List<Runnable> hooks = new ArrayList<>();
        Exit.Procedure leave = (code, message) -> {
            printed.stop();
            complained.stop();
            throw new Exited(code);
        };
        Exit.setExitProcedure(leave);
        Exit.setHaltProcedure(leave);
        Exit.setShutdownHookAdder((name, hook) -> hooks.add(hook));
        for (String line = calls.readLine(); line != null; line = calls.readLine()) {
            List<String> fields = new ArrayList<>();
            for (String field : line.split("\t", -1)) {
                fields.add(URLDecoder.decode(field, StandardCharsets.UTF_8));
            }
            String input = fields.get(0);
            System.setIn(input.equals("-") ? InputStream.nullInputStream() : new FileInputStream(input));
            Exited.first = null;
            int code = run(fields.get(1), fields.subList(2, fields.size()).toArray(new String[0]));
            printed.goOn();
            complained.goOn();
            for (Runnable hook : hooks) {
                hook.run();
            }
            hooks.clear();
            System.out.flush();
            System.err.flush();
            answers.println(code + "\t" + printed.taken() + "\t" + complained.taken());
            answers.flush();
        }
    }

    private static int run(String tool, String[] arguments) {
        try {
            Class<?> found = Class.forName(tool, true, Tools.class.getClassLoader());
            found.getMethod("main", String[].class).invoke(null, (Object) arguments);
            return Exited.first == null ? 0 : Exited.first;
        } catch (InvocationTargetException thrown) {
            if (Exited.first != null) {
                return Exited.first;
            }
            thrown.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException missing) {
            missing.printStackTrace();
            return 127;
        }
    }

    // Unwinds a tool that has called exit(). Tools catch it and call exit() again: the first code counts.
    private static class Exited extends Error {
        static Integer first;

        Exited(int code) {
            super("exit " + code, null, false, false);
            if (first == null) {
                first = code;
            }
        }
    }

    // What a tool prints until it calls exit(); what it prints while unwinding it would never have printed.
    private static class Captured extends OutputStream {
        private final ByteArrayOutputStream held = new ByteArrayOutputStream();
        private boolean stopped;

        @Override
        public synchronized void write(int one) {
            if (!stopped) {
                held.write(one);
            }
        }

        @Override
        public synchronized void write(byte[] bytes, int from, int count) {
            if (!stopped) {
                held.write(bytes, from, count);
            }
        }

        synchronized void stop() {
            stopped = true;
        }

        synchronized void goOn() {
            stopped = false;
        }

        synchronized String taken() {
            String text = Base64.getEncoder().encodeToString(held.toByteArray());
            held.reset();
            return text;
        }
    }
}

// Sends the records of a file: bootstrap, topic, file, then client settings as name=value.
// Each record: partition (-1: the client chooses), timestamp, key, value, headers. Prints partition and offset of each.
class Produce {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("key.serializer", ByteArraySerializer.class.getName());
        settings.put("value.serializer", ByteArraySerializer.class.getName());
        for (String setting : Arrays.asList(arguments).subList(3, arguments.length)) {
            String[] pair = setting.split("=", 2);
            settings.put(pair[0], pair[1]);
        }
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (DataInputStream records = new DataInputStream(new BufferedInputStream(new FileInputStream(arguments[2])));
                KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
            while (records.available() > 0) {
                int partition = records.readInt();
                long timestamp = records.readLong();
                byte[] key = Bytes.read(records);
                byte[] value = Bytes.read(records);
                List<Header> headers = new ArrayList<>();
                for (int left = records.readInt(); left > 0; left--) {
                    headers.add(new RecordHeader(new String(Bytes.read(records), StandardCharsets.UTF_8), Bytes.read(records)));
                }
                Integer chosen = partition < 0 ? null : partition;
                sent.add(producer.send(new ProducerRecord<>(arguments[1], chosen, timestamp, key, value, headers)));
            }
            producer.flush();
        }
        StringBuilder places = new StringBuilder();
        for (Future<RecordMetadata> one : sent) {
            places.append(one.get().partition()).append(' ').append(one.get().offset()).append('\n');
        }
        System.out.print(places);
    }
}

// Reads partitions to their end as it is now: bootstrap, topic, partitions (comma-separated), first offset (-1: the
// earliest), file to write to. Each record: partition, offset, timestamp, key, value, headers.
class Consume {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("auto.offset.reset", "none");
        settings.put("enable.auto.commit", "false");
        List<TopicPartition> partitions = new ArrayList<>();
        for (String number : arguments[2].split(",")) {
            partitions.add(new TopicPartition(arguments[1], Integer.parseInt(number)));
        }
        long first = Long.parseLong(arguments[3]);
        try (DataOutputStream found = new DataOutputStream(new BufferedOutputStream(new FileOutputStream(arguments[4])));
                KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.assign(partitions);
            Map<TopicPartition, Long> ends = new HashMap<>(consumer.endOffsets(partitions));
            if (first < 0) {
                consumer.seekToBeginning(partitions);
            } else {
                partitions.forEach(partition -> consumer.seek(partition, first));
            }
            long deadline = System.nanoTime() + 60_000_000_000L;
            while (partitions.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("the ends were not reached within 60 s: " + ends);
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
                    if (record.offset() < ends.get(new TopicPartition(record.topic(), record.partition()))) {
                        write(found, record);
                    }
                }
            }
        }
    }

    private static void write(DataOutputStream out, ConsumerRecord<byte[], byte[]> record) throws IOException {
        out.writeInt(record.partition());
        out.writeLong(record.offset());
        out.writeLong(record.timestamp());
        Bytes.write(out, record.key());
        Bytes.write(out, record.value());
        Header[] headers = record.headers().toArray();
        out.writeInt(headers.length);
        for (Header header : headers) {
            Bytes.write(out, header.key().getBytes(StandardCharsets.UTF_8));
            Bytes.write(out, header.value());
        }
    }
}

// Nullable bytes behind a length of four bytes, -1 for null.
class Bytes {
    static byte[] read(DataInputStream in) throws IOException {
        int length = in.readInt();
        if (length < 0) {
            return null;
        }
        byte[] bytes = in.readNBytes(length);
        if (bytes.length < length) {
            throw new EOFException();
        }
        return bytes;
    }

    static void write(DataOutputStream out, byte[] bytes) throws IOException {
        out.writeInt(bytes == null ? -1 : bytes.length);
        if (bytes != null) {
            out.write(bytes);
        }
    }
}
