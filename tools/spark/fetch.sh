#!/bin/sh
# Brings Spark's Kafka connector to .jars/spark, once. KLAMM_SPARK_JARS names a directory that has it already.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
jars=${KLAMM_SPARK_JARS:-$here/../../.jars/spark}

if ls "$jars"/spark-sql-kafka-*.jar >/dev/null 2>&1 && ls "$jars"/kafka-clients-*.jar >/dev/null 2>&1; then
    exit 0
fi
if ! command -v mvn >/dev/null 2>&1; then
    echo "Spark's Kafka connector comes from Maven Central: install Maven and Java 17, or set KLAMM_SPARK_JARS" >&2
    exit 1
fi
mkdir -p "$jars"
mvn --batch-mode --quiet --file "$here/pom.xml" dependency:copy-dependencies -DoutputDirectory="$jars"
