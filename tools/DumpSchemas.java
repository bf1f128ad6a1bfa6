// What Kafka's client jar says about every message it can read, as JSON on standard output.
// For each API and each stable version: the fields in order, their types, tags and whether they may be null; the
// defaults are those of a fresh object. Read by derive_messages.py.

import java.lang.reflect.Constructor;
import java.lang.reflect.ParameterizedType;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;

public class DumpSchemas {
    // The structures of the message being printed, root first, with their schema in each version that reaches them.
    static final Map<Class<?>, Map<Integer, Schema>> STRUCTS = new LinkedHashMap<>();

    record Typed(Type type, int tag) {}

    public static void main(String[] args) throws Exception {
        List<String> apis = new ArrayList<>();
        for (ApiMessageType api : ApiMessageType.values()) {
            int first = api.lowestSupportedVersion(), last = api.highestSupportedVersion(false);
            if (last < first) continue;
            int flexible = first;
            while (flexible <= last && api.requestHeaderVersion((short) flexible) < 2) flexible++;
            apis.add(object(
                "key", api.apiKey(),
                "name", quoted(api.name),
                "first", first,
                "last", last,
                "flexible", flexible > last ? -1 : flexible,
                "listeners", quoted(api.listeners().toString()),
                "request", message(api.newRequest().getClass(), api.requestSchemas(), first, last),
                "response", message(api.newResponse().getClass(), api.responseSchemas(), first, last)));
        }
        System.out.println(array(apis));
    }

    static String message(Class<?> root, Schema[] schemas, int first, int last) throws Exception {
        STRUCTS.clear();
        for (int version = first; version <= last; version++) visit(root, version, schemas[version]);
        List<String> all = new ArrayList<>();
        for (Class<?> struct : STRUCTS.keySet()) all.add(struct(struct));
        return array(all);
    }

    static void visit(Class<?> struct, int version, Schema schema) {
        STRUCTS.computeIfAbsent(struct, unused -> new TreeMap<>()).put(version, schema);
        fields(schema).forEach((name, typed) -> {
            Type type = typed.type.isArray() ? typed.type.arrayElementType().get() : typed.type;
            if (type instanceof Schema inner) visit(nested(member(struct, name)), version, inner);
        });
    }

    static Map<String, Typed> fields(Schema schema) {
        Map<String, Typed> found = new LinkedHashMap<>();
        for (BoundField bound : schema.fields()) {
            if (bound.def.type instanceof TaggedFields tagged)
                tagged.fields().forEach((tag, field) -> found.put(field.name, new Typed(field.type, tag)));
            else found.put(bound.def.name, new Typed(bound.def.type, -1));
        }
        return found;
    }

    static boolean isMember(java.lang.reflect.Field member, String name) {
        return member.getName().equalsIgnoreCase(name.replace("_", ""));
    }

    static java.lang.reflect.Field member(Class<?> struct, String name) {
        for (java.lang.reflect.Field member : struct.getDeclaredFields()) if (isMember(member, name)) return member;
        throw new IllegalStateException(struct + " has no " + name);
    }

    // The structure that a member holds: itself, a list of it, or one of Kafka's own collections of it.
    static Class<?> nested(java.lang.reflect.Field member) {
        java.lang.reflect.Type type = member.getGenericType();
        if (type instanceof Class<?> known && Collection.class.isAssignableFrom(known))
            type = known.getGenericSuperclass();
        if (type instanceof ParameterizedType generic) type = generic.getActualTypeArguments()[0];
        return (Class<?>) type;
    }

    static String struct(Class<?> struct) throws Exception {
        Constructor<?> constructor = struct.getDeclaredConstructor();
        Object fresh = constructor.newInstance();
        List<String> fields = new ArrayList<>();
        for (java.lang.reflect.Field member : struct.getDeclaredFields()) {
            List<String> versions = new ArrayList<>();
            String[] found = new String[1];
            STRUCTS.get(struct).forEach((version, schema) -> fields(schema).forEach((name, typed) -> {
                if (!isMember(member, name)) return;
                found[0] = name;
                versions.add(type(version, typed, member));
            }));
            if (found[0] == null) continue;
            member.setAccessible(true);
            fields.add(object(
                "name", quoted(found[0]), "default", value(member.get(fresh)), "versions", array(versions)));
        }
        return object(
            "name", quoted(struct.getSimpleName()), "versions", STRUCTS.get(struct).keySet(), "fields", array(fields));
    }

    static String type(int version, Typed typed, java.lang.reflect.Field member) {
        boolean array = typed.type.isArray();
        Type type = array ? typed.type.arrayElementType().get() : typed.type;
        boolean struct = type instanceof Schema;
        return object(
            "version", version,
            "tag", typed.tag,
            "type", quoted(struct ? nested(member).getSimpleName() : type.toString()),
            "array", array,
            "nullable", typed.type.isNullable(),
            "struct", struct);
    }

    static String value(Object value) {
        if (value == null || value instanceof Number || value instanceof Boolean) return String.valueOf(value);
        if (value instanceof String text) return quoted(text);
        if (value instanceof Collection<?> many && many.isEmpty()) return "[]";
        if (value instanceof byte[] bytes && bytes.length == 0) return quoted("");
        if (value instanceof ByteBuffer bytes && !bytes.hasRemaining()) return quoted("");
        if (value.equals(Uuid.ZERO_UUID)) return quoted("");
        if (value instanceof Message) return "{}";
        throw new IllegalStateException("no way to print the default " + value + " of " + value.getClass());
    }

    static String object(Object... namesAndValues) {
        List<String> members = new ArrayList<>();
        for (int i = 0; i < namesAndValues.length; i += 2)
            members.add(quoted((String) namesAndValues[i]) + ":" + namesAndValues[i + 1]);
        return "{" + String.join(",", members) + "}";
    }

    static String array(List<String> values) {
        return "[" + String.join(",", values) + "]";
    }

    static String quoted(String text) {
        return "\"" + text + "\"";
    }
}
