"""ListConfigResources (0-1): resources that can have settings of their own.

Version 0 lists client metrics only, of which there are none. Version 1 lists topics and brokers too; no types means
all.
"""

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.errors import ErrorCode
from klamm.metadata.image import ResourceType
from klamm.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

BROKERS = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)


def handle(request: ListConfigResourcesRequest, call: Call) -> Answer:
    if call.version == 0:
        return Reply(ListConfigResourcesResponse())
    known = {int(each) for each in ResourceType}
    wanted = set(request.resource_types) or known
    if not wanted <= known:
        return Reply(ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
    image = call.broker.image
    found = []
    if ResourceType.TOPIC in wanted:
        found += [ConfigResource(resource_name=name, resource_type=ResourceType.TOPIC) for name in image.topics]
    for kind in BROKERS:
        if kind in wanted:
            found += [ConfigResource(resource_name=str(each), resource_type=kind) for each in sorted(image.brokers)]
    return Reply(ListConfigResourcesResponse(config_resources=found))
