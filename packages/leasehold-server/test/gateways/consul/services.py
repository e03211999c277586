"""Registers, watches and deregisters a service with Debian's python3-consul. Prints what it saw."""

import json
import sys
import threading

import consul

client = consul.Consul(host="127.0.0.1", port=int(sys.argv[1]))
seen = {}


def ids(nodes):
    return [node["Service"]["ID"] for node in nodes]


client.agent.service.register(
    "web",
    service_id="py1",
    address="10.0.0.7",
    port=80,
    tags=["blue"],
    check=consul.Check.ttl("30s"),
)
client.agent.service.register("web", service_id="py2", port=81)
seen["services"] = sorted(client.agent.services())
seen["catalog"] = client.catalog.services()[1]
index, nodes = client.health.service("web", passing=True)
seen["passing before"] = ids(nodes)

answers = []
watch = threading.Thread(
    target=lambda: answers.append(
        consul.Consul(host="127.0.0.1", port=int(sys.argv[1])).health.service(
            "web", passing=True, index=index, wait="30s"
        )
    )
)
watch.start()
client.agent.check.ttl_pass("service:py1", "fine")
watch.join(40)
seen["index rises"] = int(answers[0][0]) > int(index)
seen["passing after"] = ids(answers[0][1])
seen["tag"] = ids(client.health.service("web", tag="blue")[1])
seen["output"] = client.agent.checks()["service:py1"]["Output"]
client.agent.service.maintenance("py2", "true", "new disks")
seen["in maintenance"] = ids(client.health.service("web", passing=True)[1])
client.agent.service.maintenance("py2", "false")
client.agent.check.register("extra", consul.Check.ttl("30s"), service_id="py2")
seen["checks"] = [check["CheckID"] for check in client.health.checks("web")[1]]
client.agent.check.deregister("extra")
client.agent.service.deregister("py1")
client.agent.service.deregister("py2")
seen["left"] = client.health.service("web")[1]
print(json.dumps(seen))
