"""The counters of a cluster, which any tool finds by type and key and shows by label. Cluster specification 9."""

from __future__ import annotations

import struct

from headrace.archive.client import calls
from headrace.client import __commit__, __version__
from headrace.cluster import ClusteredService, ServiceContainer
from headrace.testing import World
from tests.cluster.members import CLIENT_VERSION, Member, Script

CLUSTER_ID, SERVICE_ID = 7, 0
VERSION = f"version={__version__} commit={__commit__}"
LABELS = {
    200: "Consensus Module state / streams=104,105",
    201: "Cluster node role",
    202: "Cluster control toggle",
    203: "Cluster commit-pos:",
    205: "Cluster snapshot count",
    207: "Cluster election state",
    212: f"Cluster Errors / {VERSION}",
    213: "Cluster timed out client count",
    216: "Cluster max cycle time in ns",
    217: "Cluster work cycle time exceeded count: threshold=100ms",
    233: "Node control toggle",
    234: "Total max snapshot duration in ns",
    235: "Total max snapshot duration exceeded count: threshold=1s",
    238: "Cluster election count",
    239: "Cluster leadership term id",
}
OF_SERVICES = {
    215: f"Cluster Container Errors / {VERSION}",
    218: "Cluster container max cycle time in ns",
    219: "Cluster container work cycle time exceeded count: threshold=100ms",
    236: "Clustered service max snapshot duration in ns",
    237: "Clustered service max snapshot duration exceeded count: threshold=1s",
}
RECOVERY, SESSION = 204, 241


class Silent(ClusteredService):
    """Answers nothing."""

    def on_session_message(self, *_: object) -> None:
        """See the base class."""


def label(text: str, whose: str) -> str:
    name, _, version = text.partition(" / ")
    return f"{name} - {whose}{f' {version}' if version else ''}"


def test_counters_have_the_types_keys_and_labels_of_the_specification() -> None:
    with World(23) as world:
        node = world.add_node("leader")
        member = Member(world, node, cluster_id=CLUSTER_ID, service_count=1)
        node.host(
            lambda: ServiceContainer(
                Silent(),
                driver=node,
                is_invoked=True,
                storage=node.disk("service"),
                cluster_id=CLUSTER_ID,
            )
        )
        member.await_leader()
        script = Script(member, world.add_node("client"))
        script.connect(client_info="name=script", version=CLIENT_VERSION)
        counters = node.connect().counters

        def found() -> dict[int, list[tuple[bytes, str, int, int]]]:
            by_type: dict[int, list[tuple[bytes, str, int, int]]] = {}
            for one in counters:
                if 200 <= one.type_id <= SESSION:
                    row = bytes(one.key), one.label, one.value, one.reference_id
                    by_type.setdefault(one.type_id, []).append(row)
            return by_type

        member.until(lambda: found().get(SESSION, [(b"", "", 0, 0)])[0][3] != 0, "the session's counter")
        shown = found()
        assert sorted(shown) == sorted([*LABELS, *OF_SERVICES, SESSION])
        assert all(len(rows) == 1 for rows in shown.values())
        for type_id, text in LABELS.items():
            key, told, *_ = shown[type_id][0]
            assert told == label(text, f"clusterId={CLUSTER_ID}")
            assert struct.unpack_from("<i", key) == (CLUSTER_ID,)
        for type_id, text in OF_SERVICES.items():
            key, told, *_ = shown[type_id][0]
            assert told == label(text, f"clusterId={CLUSTER_ID} serviceId={SERVICE_ID}")
            assert struct.unpack_from("<ii", key) == (CLUSTER_ID, SERVICE_ID)
        (session,) = member.context.applied.sessions
        ingress = script.ingress.session_id
        (image,) = (
            image
            for subscription in member.module._clients.ingress.subscriptions
            for image in subscription.images
            if image.session_id == ingress
        )
        key, told, value, reference = shown[SESSION][0]
        assert struct.unpack_from("<iq", key) == (CLUSTER_ID, session.session_id)
        origin = f"sourceIdentity={image.source_identity} sessionId={ingress}"
        assert told == f"cluster-session: name=script {origin} - clusterId={CLUSTER_ID}"
        assert (value, reference) == (session.session_id, session.publication.registration_id)

        # The log is no longer recorded, which brings an election: the next leader knows no more than the channel.
        recording_id = member.context.recording_log.last_term.recording_id
        asked = member.context.archive.ask(calls.stop_recording_by_id(recording_id))
        member.until(lambda: asked.is_done, "the stop of the recording")
        member.until(lambda: member.module.leadership_term_id == 1 and member.module.is_leader, "a new term")
        member.until(lambda: SESSION in found(), "the session's counter again")
        assert found()[SESSION] == [
            (key, f"cluster-session: {session.response_channel} - clusterId={CLUSTER_ID}", 0, 0)
        ]


def test_a_member_that_starts_tells_its_services_what_to_load() -> None:
    with World(204) as world:
        member = Member(world, world.add_node("leader"), cluster_id=CLUSTER_ID, service_count=1)

        def recovery() -> list[tuple[bytes, str]]:
            counters = member.context.client.counters
            return [(one.key, one.label) for one in counters if one.type_id == RECOVERY]

        member.until(recovery, "what services begin with")
        [(key, told)] = recovery()
        assert told == f"Cluster recovery: leadershipTermId=-1 logPosition=0 clusterId={CLUSTER_ID}"
        assert struct.unpack_from("<qqqii", key) == (-1, 0, 0, CLUSTER_ID, 0)
