"""IncrementalAlterConfigs (0-1): set, delete, append to or subtract from single settings of topics and brokers."""

from klamm.broker.answer import Answer, Elsewhere
from klamm.broker.call import Call
from klamm.config import Change
from klamm.controller.wishes import ConfigChanges, ConfigResult
from klamm.handlers.alter_configs import WAITING_MS
from klamm.handlers.committing import when_committed
from klamm.metadata.image import ConfigResource
from klamm.slicing import Converted
from klamm.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def handle(request: IncrementalAlterConfigsRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Elsewhere()
    plan = controller.incremental_alter_configs(
        Converted(request.resources, _wish), validate_only=request.validate_only
    )
    return when_committed(call, plan, WAITING_MS, _response, is_users=True)


def _wish(resource: AlterConfigsResource) -> ConfigChanges:
    return ConfigChanges(
        ConfigResource(resource.resource_type, resource.resource_name),
        [Change(setting.name, setting.config_operation, setting.value) for setting in resource.configs],
    )


def _response(outcome: list[ConfigResult]) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
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
