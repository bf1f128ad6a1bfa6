#!/bin/sh
# Brings Apache Kafka's jars to .jars/kafka, once. KLAMM_KAFKA_JARS names a directory that has them already.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
jars=${KLAMM_KAFKA_JARS:-$here/../../.jars/kafka}

if ls "$jars"/kafka_2.13-*.jar >/dev/null 2>&1 && ls "$jars"/kafka-tools-*.jar >/dev/null 2>&1 &&
    ls "$jars"/kafka-shell-*.jar >/dev/null 2>&1; then
    exit 0
fi
if ! command -v mvn >/dev/null 2>&1; then
    echo "Kafka's jars come from Maven Central: install Maven and Java 17, or set KLAMM_KAFKA_JARS" >&2
    exit 1
fi
mkdir -p "$jars"
mvn --batch-mode --quiet --file "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$jars"
