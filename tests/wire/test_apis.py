"""The table of APIs against the messages themselves."""

import subprocess
import sys

import pytest

from klamm.codec.schema import NEVER, schema_of
from klamm.wire.apis import API_BY_KEY, API_VERSIONS, NEVER_FLEXIBLE, PRODUCE, Api, request_type, response_type


@pytest.mark.parametrize("api", API_BY_KEY.values(), ids=lambda api: api.name)
def test_the_table_says_what_the_messages_say(api: Api) -> None:
    for cls, ending in ((request_type(api.key), "Request"), (response_type(api.key), "Response")):
        schema = schema_of(cls)
        assert schema.name == api.name + ending
        assert (schema.versions.first, schema.versions.last) == (api.min_version, api.max_version)
        assert (NEVER_FLEXIBLE if schema.flexible == NEVER else schema.flexible.first) == api.flexible_from


def test_only_produce_advertises_what_it_does_not_serve() -> None:
    """librdkafka before 2.11 sends uncompressed to a broker whose Produce does not begin at 0."""
    assert [api.key for api in API_BY_KEY.values() if api.advertised_min != api.min_version] == [PRODUCE]
    assert API_BY_KEY[PRODUCE].advertised_min == 0
    assert not API_BY_KEY[PRODUCE].serves(2)
    assert API_BY_KEY[PRODUCE].serves(3)


def test_versions_old_clients_live_on_begin_at_zero() -> None:
    by_name = {api.name: api for api in API_BY_KEY.values()}
    for name in ("Metadata", "FindCoordinator", "JoinGroup", "ApiVersions"):
        assert by_name[name].advertised_min == 0


def test_flexible_is_not_the_same_as_latest() -> None:
    by_name = {api.name: api for api in API_BY_KEY.values()}
    assert by_name["SaslHandshake"].flexible_from == by_name["OffsetDelete"].flexible_from == NEVER_FLEXIBLE
    assert by_name["EndTxn"].flexible_from == 3
    assert by_name["Heartbeat"].flexible_from == by_name["SyncGroup"].flexible_from == 4
    assert by_name["CreateTopics"].flexible_from == 5


def test_the_table_imports_no_message() -> None:
    """A node imports the table at its start and a message when somebody asks for it."""
    program = "import sys, klamm.wire.apis; print([name for name in sys.modules if 'wire.messages' in name])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_api_versions_has_its_key() -> None:
    assert API_BY_KEY[API_VERSIONS].name == "ApiVersions"
