"""Whatever a client sends, the fault is told to be the client's."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from notify_queue.domain.page import encode_cursor, place_of
from tests.unit.api.in_memory import CURSOR_KEY, InMemoryQueue, valid_body

QUEUE = InMemoryQueue()
CLIENT = QUEUE.app().test_client()
CURSOR = encode_cursor(place_of(QUEUE.add()), CURSOR_KEY)
PARAMETERS = ["status", "recipient", "limit", "cursor"]

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))
    | st.datetimes().map(lambda moment: moment.isoformat() + "Z")
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
FIELDS = [*valid_body(), "sendAt", "unknown"]


@given(changes=st.dictionaries(st.sampled_from(FIELDS), VALUES | st.just(...)))
@settings(max_examples=200, deadline=None)
def test_any_json_value_in_any_field_is_accepted_or_refused(changes: dict[str, object]) -> None:
    # Python's own writer: NaN and unpaired surrogates go out as they are.
    content = json.dumps(valid_body(**changes))

    response = CLIENT.post("/notifications", data=content, content_type="application/json")

    assert response.status_code in {200, 201, 400, 409}


@given(
    content=st.binary(max_size=200),
    charset=st.sampled_from(["utf-8", "utf-16", "utf-32le", "latin-1"]),
    encoding=st.sampled_from(["", "gzip", "deflate", "foo"]),
)
@settings(max_examples=100, deadline=None)
def test_any_bytes_as_a_body_are_refused_as_such(
    content: bytes, charset: str, encoding: str
) -> None:
    response = CLIENT.post(
        "/notifications",
        data=content,
        content_type=f"application/json; charset={charset}",
        headers={"Content-Encoding": encoding},
    )

    assert response.status_code in {400, 415}


@given(target=st.text(st.characters(max_codepoint=255), max_size=60))
@settings(max_examples=100, deadline=None)
def test_any_request_target_is_answered(target: str) -> None:
    response = CLIENT.get("/", environ_overrides={"RAW_URI": target})

    assert response.status_code in {200, 400, 404, 405}


@given(changes=st.dictionaries(st.sampled_from([*PARAMETERS, "unknown"]), VALUES))
@settings(max_examples=200, deadline=None)
def test_any_json_value_in_any_field_of_a_redrive_is_accepted_or_refused(
    changes: dict[str, object],
) -> None:
    content = json.dumps(changes)

    response = CLIENT.post("/notifications/retry", data=content, content_type="application/json")

    assert response.status_code in {200, 400}


# As servers hand it over: bytes, each as a character.
BYTES = st.text(st.characters(max_codepoint=255), max_size=60)


@given(query=BYTES)
@settings(max_examples=100, deadline=None)
def test_any_bytes_as_a_query_are_accepted_or_refused(query: str) -> None:
    response = CLIENT.get("/notifications", environ_overrides={"QUERY_STRING": query})

    assert response.status_code in {200, 400}


@given(parameters=st.lists(st.tuples(st.sampled_from(PARAMETERS), BYTES), max_size=6))
@settings(max_examples=200, deadline=None)
def test_any_value_of_any_parameter_is_accepted_or_refused(
    parameters: list[tuple[str, str]],
) -> None:
    query = "&".join(f"{name}={value}" for name, value in parameters)

    response = CLIENT.get("/notifications", environ_overrides={"QUERY_STRING": query})

    assert response.status_code in {200, 400}


@given(limit=st.floats() | st.integers() | st.integers(0).map(hex) | st.from_regex(r"[0-9eE.+-]+"))
@settings(max_examples=200, deadline=None)
def test_any_number_as_a_limit_is_accepted_or_refused(limit: object) -> None:
    response = CLIENT.get("/notifications", query_string={"limit": limit})

    assert response.status_code in {200, 400}


@given(
    start=st.integers(0, len(CURSOR)),
    end=st.integers(0, len(CURSOR)),
    text=st.text(st.characters(codec="utf-8"), max_size=10),
)
@settings(max_examples=200, deadline=None)
def test_a_cursor_with_anything_changed_is_refused(start: int, end: int, text: str) -> None:
    changed = CURSOR[:start] + text + CURSOR[end:]

    response = CLIENT.get("/notifications", query_string={"cursor": changed})

    assert response.status_code == (200 if changed == CURSOR else 400)
