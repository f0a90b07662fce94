"""The `google-genai` package: content whole and streamed, tools, schemas, counts, embeddings, models, live sessions and errors."""
import asyncio
import ssl

import pytest
from google import genai
from google.genai import errors, types
from pydantic import BaseModel

GENERAL = "sandbox/general"
QUESTION = "What is Gatehouse?"


class Place(BaseModel):
    name: str
    population: int


def client_of(origin, secret):
    options = types.HttpOptions(base_url=origin, retry_options=types.HttpRetryOptions(attempts=1))
    return genai.Client(api_key=secret, http_options=options)


@pytest.fixture
def client(origin, token):
    return client_of(origin, token)


def test_content_whole(client):
    answer = client.models.generate_content(model=GENERAL, contents=QUESTION)
    assert "Gatehouse" in answer.text
    assert answer.usage_metadata.total_token_count > 0
    assert answer.candidates[0].finish_reason == types.FinishReason.STOP


def test_content_streamed(client):
    chunks = list(client.models.generate_content_stream(model=GENERAL, contents=QUESTION))
    assert "Gatehouse" in "".join(chunk.text or "" for chunk in chunks)
    assert chunks[-1].usage_metadata.candidates_token_count > 0


def test_content_with_the_asynchronous_client(client):
    async def run():
        stream = await client.aio.models.generate_content_stream(model=GENERAL, contents=QUESTION)
        return "".join([chunk.text or "" async for chunk in stream])

    assert "Gatehouse" in asyncio.run(run())


def test_a_function_is_called_by_the_library(client):
    calls = []

    def get_weather(city: str) -> str:
        """The weather of a place."""
        calls.append(city)
        return "Rain."

    answer = client.models.generate_content(
        model=GENERAL,
        contents="Call get_weather with the city Oslo.",
        config=types.GenerateContentConfig(tools=[get_weather]),
    )
    assert len(calls) == 1
    assert answer.text


def test_structured_output_is_parsed(client):
    config = types.GenerateContentConfig(response_mime_type="application/json", response_schema=Place)
    assert isinstance(client.models.generate_content(model=GENERAL, contents="A place.", config=config).parsed, Place)


def test_a_chat_keeps_its_history(client):
    chat = client.chats.create(model=GENERAL)
    assert chat.send_message(QUESTION).text
    assert "".join(chunk.text or "" for chunk in chat.send_message_stream("And a token?"))
    # The library keeps each chunk of a stream as a turn of its own, and the gateway has to take these.
    assert [content.role for content in chat.get_history()][:4] == ["user", "model", "user", "model"]
    assert chat.send_message("Thank you.").text


def test_tokens_embeddings_and_models(client):
    assert client.models.count_tokens(model=GENERAL, contents=QUESTION).total_tokens > 0
    config = types.EmbedContentConfig(output_dimensionality=256)
    answer = client.models.embed_content(model="sandbox/embedding", contents=["a river", "a boat"], config=config)
    assert [len(one.values) for one in answer.embeddings] == [256, 256]
    assert f"models/{GENERAL}" in [model.name for model in client.models.list(config={"page_size": 2})]
    assert client.models.get(model=GENERAL).name == f"models/{GENERAL}"


def test_errors(client, origin, narrow_token):
    def fails_with(kind, code, status, call):
        with pytest.raises(kind) as caught:
            call()
        assert [caught.value.code, caught.value.status] == [code, status]

    def send(contents="Hi", client=client, model=GENERAL, **config):
        return lambda: client.models.generate_content(model=model, contents=contents, config=config)

    fails_with(errors.ClientError, 401, "UNAUTHENTICATED", send(client=client_of(origin, "wrong")))
    fails_with(errors.ClientError, 403, "PERMISSION_DENIED", send(client=client_of(origin, narrow_token)))
    fails_with(errors.ClientError, 404, "NOT_FOUND", send(model="no/such"))
    fails_with(errors.ClientError, 400, "INVALID_ARGUMENT", send(temperature=9))
    fails_with(errors.ClientError, 429, "RESOURCE_EXHAUSTED", send("@sandbox status=429"))
    fails_with(errors.ServerError, 503, "UNAVAILABLE", send("@sandbox status=503"))


def test_live(tls_origin, token):
    trusting = ssl.create_default_context()
    trusting.check_hostname = False
    trusting.verify_mode = ssl.CERT_NONE
    options = types.HttpOptions(base_url=tls_origin, async_client_args={"ssl": trusting})
    client = genai.Client(api_key=token, http_options=options)

    async def talk():
        config = {"response_modalities": ["TEXT"]}
        async with client.aio.live.connect(model="sandbox/realtime", config=config) as session:
            await session.send_client_content(turns={"role": "user", "parts": [{"text": "Good morning"}]})
            messages = [message async for message in session.receive()]
        return "".join(message.text or "" for message in messages), messages[-1].usage_metadata

    text, usage = asyncio.run(talk())
    assert text == "You said: Good morning"
    assert (usage.prompt_token_count, usage.response_token_count) == (3, 6)
