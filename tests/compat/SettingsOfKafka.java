// What Kafka itself says about its settings: asked in JSON on standard input, answered in JSON on standard output.
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.StringReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.ConfigKey;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

public class SettingsOfKafka {
    static final Map<String, ConfigKey> BROKER = AbstractKafkaConfig.CONFIG_DEF.configKeys();
    static final Map<String, ConfigKey> TOPIC = LogConfig.configKeys();
    static final Map<String, String> MODES = DynamicBrokerConfig.dynamicConfigUpdateModes();

    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        JsonNode asked = mapper.readTree(System.in);
        Map<String, Object> answer = new TreeMap<>();
        answer.put("broker", table(BROKER));
        answer.put("topic", table(TOPIC));
        answer.put("synonyms", synonyms());
        List<Object> judged = new ArrayList<>();
        for (JsonNode wish : asked.get("judge"))
            judged.add(judged(wish.get(0).asText(), wish.get(1).asText(), wish.get(2).asText()));
        answer.put("judged", judged);
        List<Object> properties = new ArrayList<>();
        for (JsonNode text : asked.get("properties")) {
            Properties read = new Properties();
            read.load(new StringReader(text.asText()));
            properties.add(new TreeMap<>(read));
        }
        answer.put("properties", properties);
        List<String> doubles = new ArrayList<>();
        for (JsonNode number : asked.get("doubles"))
            doubles.add(Double.toString(number.asDouble()));
        answer.put("doubles", doubles);
        mapper.writeValue(System.out, answer);
    }

    static Map<String, Object> table(Map<String, ConfigKey> keys) {
        Map<String, Object> rows = new TreeMap<>();
        for (ConfigKey key : keys.values()) {
            Map<String, Object> row = new TreeMap<>();
            row.put("kind", key.type.toString());
            row.put("required", !key.hasDefault());
            row.put("default", key.hasDefault() ? ConfigDef.convertToString(key.defaultValue, key.type) : null);
            row.put("listed", !key.internalConfig);
            row.put("mode", MODES.getOrDefault(key.name, "read-only"));
            rows.put(key.name, row);
        }
        return rows;
    }

    static Map<String, Object> synonyms() {
        Map<String, Object> all = new TreeMap<>();
        ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.forEach((name, others) -> {
            List<Object> list = new ArrayList<>();
            others.forEach(other -> list.add(List.of(other.name(), other.converter().apply("1"))));
            all.put(name, list);
        });
        return all;
    }

    static Object judged(String scope, String name, String value) {
        try {
            if (scope.equals("topic")) {
                LogConfig.validate(Map.of(name, value));
            } else {
                ConfigKey key = BROKER.get(name);
                Object parsed = ConfigDef.parseType(name, value, key.type);
                if (key.validator != null)
                    key.validator.ensureValid(name, parsed);
            }
            return null;
        } catch (RuntimeException problem) {
            return Optional.ofNullable(problem.getMessage()).orElse("refused");
        }
    }
}
