"""The `anthropic` package: messages whole and streamed, tools, the tool runner, counts, models and errors."""
import anthropic
import pytest
from anthropic import beta_tool
from pydantic import BaseModel

GENERAL = "sandbox/general"
QUESTION = [{"role": "user", "content": "What is Gatehouse?"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"name": "get_weather", "description": "The weather of a place.", "input_schema": SCHEMA}


class Place(BaseModel):
    name: str
    population: int


@pytest.fixture
def client(origin, token):
    return anthropic.Anthropic(base_url=origin, api_key=token, max_retries=0)


def test_a_message_whole(client):
    message = client.messages.create(model=GENERAL, max_tokens=200, messages=QUESTION, system="Be brief.")
    assert "Gatehouse" in message.content[0].text
    assert message.stop_reason == "end_turn"
    assert message.usage.input_tokens > 0
    assert message._request_id


def test_a_message_streamed(client):
    with client.messages.stream(model=GENERAL, max_tokens=200, messages=QUESTION) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == final.content[0].text
    assert final.usage.output_tokens > 0


def test_a_bearer_token_is_accepted(origin, token):
    client = anthropic.Anthropic(base_url=origin, auth_token=token)
    assert client.messages.create(model=GENERAL, max_tokens=5, messages=QUESTION).stop_reason == "max_tokens"


def test_tools_and_their_result(client):
    choice = {"type": "any"}
    first = client.messages.create(
        model=GENERAL, max_tokens=200, messages=QUESTION, tools=[TOOL], tool_choice=choice
    )
    assert first.stop_reason == "tool_use"
    call = next(block for block in first.content if block.type == "tool_use")
    assert isinstance(call.input["city"], str)
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "Rain."}
    history = [*QUESTION, {"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
    assert client.messages.create(model=GENERAL, max_tokens=200, messages=history, tools=[TOOL]).content[0].text


def test_the_tool_runner(client):
    calls = []

    @beta_tool
    def get_weather(city: str) -> str:
        """The weather of a place.

        Args:
            city: Its name.
        """
        calls.append(city)
        return "Rain."

    runner = client.beta.messages.tool_runner(
        model=GENERAL,
        max_tokens=200,
        tools=[get_weather],
        messages=[{"role": "user", "content": "Call get_weather with the city Oslo."}],
    )
    final = runner.until_done()
    assert len(calls) == 1
    assert final.stop_reason == "end_turn"


def test_structured_output_is_parsed(client):
    message = client.messages.parse(model=GENERAL, max_tokens=500, messages=QUESTION, output_format=Place)
    assert isinstance(message.parsed_output, Place)


def test_tokens_are_counted_and_models_listed(client):
    assert client.messages.count_tokens(model=GENERAL, messages=QUESTION).input_tokens > 0
    assert GENERAL in [model.id for model in client.models.list(limit=2)]
    assert client.models.retrieve(GENERAL).id == GENERAL


def test_error_classes(client, origin, narrow_token):
    def fails_with(kind, type, call):
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.type == type
        assert caught.value.request_id

    def send(content="Hi", client=client, model=GENERAL, **more):
        messages = [{"role": "user", "content": content}]
        return lambda: client.messages.create(model=model, max_tokens=50, messages=messages, **more)

    def by(secret):
        return anthropic.Anthropic(base_url=origin, api_key=secret, max_retries=0)

    fails_with(anthropic.AuthenticationError, "authentication_error", send(client=by("wrong")))
    fails_with(anthropic.PermissionDeniedError, "permission_error", send(client=by(narrow_token)))
    fails_with(anthropic.NotFoundError, "not_found_error", send(model="no/such"))
    fails_with(anthropic.BadRequestError, "invalid_request_error", send(extra_body={"temperature": 9}))
    fails_with(anthropic.RateLimitError, "rate_limit_error", send("@sandbox status=429"))
    with pytest.raises(anthropic.APIError):
        list(send("@sandbox tokens=50 cut_after=5", stream=True)())
