"""ApiVersions (0-4): what is served here, in which versions, and the cluster's finalized features.

The list follows from the table of handlers. Where Kafka advertises more than it serves because clients draw wrong
conclusions otherwise (Produce from 0), so do we. Telemetry is not advertised: clients would start to push. Nor is what
only nodes ask of one another.
"""

import re

from klamm.broker.answer import Answer, Reply
from klamm.broker.call import Call
from klamm.controller.features import SUPPORTED
from klamm.errors import ErrorCode
from klamm.handlers import TABLE
from klamm.wire.apis import API_BY_KEY, CONTROLLER
from klamm.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(request: ApiVersionsRequest, call: Call) -> Answer:
    if call.version >= 3 and not (
        SOFTWARE.fullmatch(request.client_software_name) and SOFTWARE.fullmatch(request.client_software_version)
    ):
        return Reply(ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))
    image = call.broker.image
    return Reply(
        ApiVersionsResponse(
            api_keys=served(),
            # Up to version 3 a feature's lowest version must not be 0: older clients refuse the whole answer.
            supported_features=[
                SupportedFeatureKey(name=name, min_version=low, max_version=high)
                for name, (low, high) in sorted(SUPPORTED.items())
                if low > 0 or call.version >= 4
            ],
            finalized_features_epoch=image.offset,
            finalized_features=[
                FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
                for name, level in sorted(image.features.items())
            ],
        )
    )


def unsupported() -> ApiVersionsResponse:
    """The answer, in version 0, to a version of this API that we do not know: enough for the client to try again."""
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=served())


def served() -> list[ApiVersion]:
    return [
        ApiVersion(api_key=key, min_version=API_BY_KEY[key].advertised_min, max_version=API_BY_KEY[key].max_version)
        for key in sorted(TABLE)
        if API_BY_KEY[key].listener != CONTROLLER
    ]
