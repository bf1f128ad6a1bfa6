"""UpdateFeatures (0-2): raises or lowers what the cluster has agreed on. All levels are set or none.

Up to version 1 every feature has a result of its own, and gets the common one.
"""

from klamm.broker.answer import Answer, Elsewhere, Reply
from klamm.broker.call import Call
from klamm.controller.wishes import FeatureUpdate, UpgradeType
from klamm.errors import ErrorCode, KafkaError
from klamm.handlers.committing import once_committed
from klamm.machine import in_one_piece
from klamm.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

FIRST_VERSION_WITH_TYPES = 1


def handle(request: UpdateFeaturesRequest, call: Call) -> Answer:
    controller = call.broker.controller
    if controller is None:
        return Elsewhere()
    updates = request.feature_updates

    def respond(outcome: None, code: ErrorCode, message: str | None) -> UpdateFeaturesResponse:
        results = [
            UpdatableFeatureResult(feature=each.feature, error_code=code, error_message=message) for each in updates
        ]
        return UpdateFeaturesResponse(error_code=code, error_message=message, results=results)

    wishes = [FeatureUpdate(each.feature, each.max_version_level, _kind(each, call.version)) for each in updates]
    try:
        decision = controller.update_features(wishes, validate_only=request.validate_only)
    except KafkaError as error:
        return Reply(respond(None, error.code, error.message))
    return once_committed(call, in_one_piece(decision), request.timeout_ms, respond, is_users=True)


def _kind(update: FeatureUpdateKey, version: int) -> int:
    if version >= FIRST_VERSION_WITH_TYPES:
        return update.upgrade_type
    return UpgradeType.SAFE_DOWNGRADE if update.allow_downgrade else UpgradeType.UPGRADE
