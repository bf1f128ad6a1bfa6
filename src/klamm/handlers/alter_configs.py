"""AlterConfigs (0-2): replace all settings of a topic or broker. IncrementalAlterConfigs superseded it."""

from klamm.broker.answer import Answer, Elsewhere
from klamm.broker.call import Call
from klamm.controller.wishes import ConfigReplacement, ConfigResult
from klamm.handlers.committing import when_committed
from klamm.metadata.image import ConfigResource
from klamm.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResourceResponse, AlterConfigsResponse

WAITING_MS = 30_000


def handle(request: AlterConfigsRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Elsewhere()
    wishes = [
        ConfigReplacement(
            ConfigResource(each.resource_type, each.resource_name),
            [(setting.name, setting.value) for setting in each.configs],
        )
        for each in request.resources
    ]
    decision = controller.alter_configs(wishes, validate_only=request.validate_only)
    return when_committed(call, decision, WAITING_MS, _response)


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
