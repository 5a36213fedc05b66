#!/usr/bin/env bash
# Starts a Kafka broker on 127.0.0.1:9092, from jars that Maven has fetched: ./broker.sh
# Its data stay in target/run/broker.
set -euo pipefail
cd "$(dirname "$0")"
[ -d target/broker ] || mvn -q -B process-classes

data=$PWD/target/run/broker
mkdir -p "$data"
cat >"$data/server.properties" <<END
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:9093
listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093
advertised.listeners=PLAINTEXT://127.0.0.1:9092
controller.listener.names=CONTROLLER
log.dirs=$data/logs
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
END
if [ ! -f "$data/logs/meta.properties" ]; then
    id=$(java -cp 'target/broker/*' kafka.tools.StorageTool random-uuid 2>/dev/null | tail -n 1)
    java -cp 'target/broker/*' kafka.tools.StorageTool format -t "$id" -c "$data/server.properties" >/dev/null 2>&1
fi
exec java -Xmx512m -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp 'target/broker/*' \
    kafka.Kafka "$data/server.properties" >"$data/broker.log" 2>&1
