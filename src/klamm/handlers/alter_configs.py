"""AlterConfigs (0-2): replace all settings of a topic or broker. IncrementalAlterConfigs superseded it."""

from klamm.broker.answer import Answer, Elsewhere
from klamm.broker.call import Call
from klamm.controller.wishes import ConfigReplacement, ConfigResult
from klamm.handlers.committing import when_committed
from klamm.metadata.image import ConfigResource
from klamm.slicing import Converted
from klamm.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

WAITING_MS = 30_000


def handle(request: AlterConfigsRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Elsewhere()
    plan = controller.alter_configs(Converted(request.resources, _wish), validate_only=request.validate_only)
    return when_committed(call, plan, WAITING_MS, _response, is_users=True)


def _wish(resource: AlterConfigsResource) -> ConfigReplacement:
    return ConfigReplacement(
        ConfigResource(resource.resource_type, resource.resource_name),
        [(setting.name, setting.value) for setting in resource.configs],
    )


def _response(outcome: list[ConfigResult]) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=each.error,
                error_message=each.message,
                resource_type=each.resource.type,
                resource_name=each.resource.name,
            )
            for each in outcome
        ]
    )
