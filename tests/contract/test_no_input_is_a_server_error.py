"""Whatever a client sends, the fault is told to be the client's."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.api.in_memory import InMemoryQueue, valid_body

CLIENT = InMemoryQueue().app().test_client()

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
