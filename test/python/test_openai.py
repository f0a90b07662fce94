"""The `openai` package: chat, responses, embeddings, moderations, images, videos, audio, realtime sessions and errors."""
import asyncio
import base64
import json

import openai
import pytest
from pydantic import BaseModel

GENERAL = "sandbox/general"
QUESTION = [{"role": "user", "content": "What is Gatehouse?"}]
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}


class Place(BaseModel):
    name: str
    population: int
    tags: list[str]


@pytest.fixture
def client(origin, token):
    return openai.OpenAI(base_url=f"{origin}/v1", api_key=token, max_retries=0)


def test_lists_and_retrieves_models(client):
    ids = [model.id for model in client.models.list()]
    assert GENERAL in ids
    assert client.models.retrieve(GENERAL).id == GENERAL


def test_chat_whole(client):
    answer = client.chat.completions.create(model=GENERAL, messages=QUESTION)
    assert "Gatehouse" in answer.choices[0].message.content
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer._request_id


def test_chat_streamed(client):
    options = {"include_usage": True}
    chunks = list(client.chat.completions.create(model=GENERAL, messages=QUESTION, stream=True, stream_options=options))
    text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
    assert "Gatehouse" in text
    assert chunks[-1].usage.completion_tokens > 0


def test_chat_by_the_stream_helper(client):
    with client.chat.completions.stream(model=GENERAL, messages=QUESTION) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {"chunk", "content.delta", "content.done"} <= kinds
    assert "Gatehouse" in final.choices[0].message.content


def test_chat_with_the_asynchronous_client(origin, token):
    async def run():
        async with openai.AsyncOpenAI(base_url=f"{origin}/v1", api_key=token) as client:
            stream = await client.chat.completions.create(model=GENERAL, messages=QUESTION, stream=True)
            return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])

    assert "Gatehouse" in asyncio.run(run())


def test_tools_whole_and_their_result(client):
    first = client.chat.completions.create(
        model=GENERAL, messages=QUESTION, tools=[TOOL], tool_choice="required"
    ).choices[0]
    assert first.finish_reason == "tool_calls"
    call = first.message.tool_calls[0]
    assert isinstance(json.loads(call.function.arguments)["city"], str)
    result = {"role": "tool", "tool_call_id": call.id, "content": "Rain."}
    # The message goes back as the library serializes it, with its null members.
    second = client.chat.completions.create(
        model=GENERAL, messages=[*QUESTION, first.message.model_dump(), result], tools=[TOOL]
    )
    assert second.choices[0].message.content


def test_tools_streamed(client):
    with client.chat.completions.stream(
        model=GENERAL, messages=QUESTION, tools=[TOOL], tool_choice="required"
    ) as stream:
        names = [event.name for event in stream if event.type == "tool_calls.function.arguments.done"]
    assert names == ["get_weather"]


def test_structured_output_is_parsed(client):
    answer = client.chat.completions.parse(model=GENERAL, messages=QUESTION, response_format=Place)
    assert isinstance(answer.choices[0].message.parsed, Place)


def test_a_response_is_continued_read_and_deleted(client):
    first = client.responses.create(model=GENERAL, input="What is Gatehouse?")
    second = client.responses.create(model=GENERAL, input="And a token?", previous_response_id=first.id)
    assert first.output_text and second.output_text
    assert client.responses.retrieve(second.id).output_text == second.output_text
    assert len(list(client.responses.input_items.list(second.id))) >= 1
    client.responses.delete(second.id)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(second.id)


def test_a_response_streamed(client):
    with client.responses.stream(model=GENERAL, input="What is Gatehouse?") as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_response()
    assert {"response.created", "response.output_text.delta", "response.completed"} <= kinds
    assert "Gatehouse" in final.output_text


def test_a_response_is_parsed_and_calls_a_tool(client):
    assert isinstance(
        client.responses.parse(model=GENERAL, input="A place.", text_format=Place).output_parsed, Place
    )
    tool = {"type": "function", "name": "get_weather", "parameters": WEATHER, "strict": False}
    first = client.responses.create(model=GENERAL, input="Rain?", tools=[tool], tool_choice="required")
    call = next(item for item in first.output if item.type == "function_call")
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "Rain."}
    second = client.responses.create(model=GENERAL, input=[*first.output, result], tools=[tool])
    assert second.output_text


def test_a_background_response(client):
    response = client.responses.create(model=GENERAL, input="What is Gatehouse?", background=True)
    for _ in range(200):
        if response.status not in ("queued", "in_progress"):
            break
        response = client.responses.retrieve(response.id)
    assert response.status == "completed"
    running = client.responses.create(
        model=GENERAL, input="Wait.\n@sandbox tokens=100 interval_ms=500", background=True
    )
    assert client.responses.cancel(running.id).status == "cancelled"


def test_input_tokens_are_counted(client):
    assert client.responses.input_tokens.count(model=GENERAL, input="What is Gatehouse?").input_tokens > 0


def test_embeddings(client):
    # The library requests base64 by itself; both give the same numbers.
    packed = client.embeddings.create(model="sandbox/embedding", input=["a river", "a boat"])
    plain = client.embeddings.create(model="sandbox/embedding", input=["a river"], encoding_format="float")
    assert len(packed.data) == 2
    assert packed.data[0].embedding == pytest.approx(plain.data[0].embedding, abs=1e-6)
    tokens = client.embeddings.create(model="sandbox/embedding", input=[[1, 2, 3], [4, 5]])
    assert len(tokens.data) == 2
    short = client.embeddings.create(model="sandbox/embedding", input="a river", dimensions=256)
    assert len(short.data[0].embedding) == 256


def test_moderations(client):
    answer = client.moderations.create(model="sandbox/moderation", input=["A walk.", "I will kill you."])
    assert [result.flagged for result in answer.results] == [False, True]


def test_images_generated_edited_and_streamed(client):
    picture = client.images.generate(model="sandbox/image", prompt="A boat", size="256x256")
    assert picture.data[0].b64_json
    linked = client.images.generate(model="sandbox/image", prompt="A boat", size="256x256", response_format="url")
    assert linked.data[0].url.startswith("http")
    edited = client.images.edit(
        model="sandbox/image", image=("boat.png", PNG, "image/png"), prompt="Red", size="256x256"
    )
    assert edited.data[0].b64_json
    events = client.images.generate(model="sandbox/image", prompt="A boat", size="256x256", stream=True)
    assert [event.type for event in events][-1] == "image_generation.completed"


def test_videos_are_made_listed_downloaded_and_deleted(client):
    video = client.videos.create_and_poll(
        model="sandbox/text-to-video", prompt="A boat.\n@sandbox quick=1", seconds="4", poll_interval_ms=200
    )
    assert video.status == "completed"
    assert video.id in [one.id for one in client.videos.list(limit=5)]
    assert client.videos.download_content(video.id).read()[4:8] == b"ftyp"
    assert client.videos.delete(video.id).deleted


def test_error_classes(client, origin, token, narrow_token):
    def fails_with(kind, code, call):
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.code == code
        assert caught.value.request_id

    def chat(content="Hi", client=client, model=GENERAL, **more):
        return lambda: client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": content}], **more
        )

    def by(secret):
        return openai.OpenAI(base_url=f"{origin}/v1", api_key=secret, max_retries=0)

    fails_with(openai.AuthenticationError, "invalid_api_key", chat(client=by("wrong")))
    fails_with(openai.PermissionDeniedError, "model_not_allowed", chat(client=by(narrow_token)))
    fails_with(openai.NotFoundError, "model_not_found", chat(model="no/such"))
    fails_with(openai.BadRequestError, "invalid_value", chat(temperature=9))
    fails_with(openai.RateLimitError, "rate_limit_exceeded", chat("@sandbox status=429"))
    fails_with(openai.InternalServerError, "server_is_overloaded", chat("@sandbox status=503"))
    with pytest.raises(openai.APIError):
        list(chat("@sandbox tokens=50 cut_after=5", stream=True)())


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6364f8cf500f00030601805a34"
    "7d6b0000000049454e44ae426082"
)


def test_text_completions(client):
    answer = client.completions.create(model=GENERAL, prompt=["What is Gatehouse?", "Hello"], max_tokens=20, logprobs=1)
    assert [choice.index for choice in answer.choices] == [0, 1]
    for choice in answer.choices:
        tokens, offsets = choice.logprobs.tokens, choice.logprobs.text_offset
        assert [choice.text[at : at + len(token)] for at, token in zip(offsets, tokens, strict=True)] == tokens
    options = {"include_usage": True}
    chunks = list(client.completions.create(model=GENERAL, prompt="Hello", stream=True, stream_options=options))
    assert "".join(choice.text for chunk in chunks for choice in chunk.choices)
    assert chunks[-1].usage.completion_tokens == 16
    with pytest.raises(openai.BadRequestError) as refused:
        client.completions.create(model=GENERAL, prompt=[1, 2, 3])
    assert refused.value.param == "prompt"


SPEECH_TEXT = "Good morning. How are you?"


def spoken(client, text=SPEECH_TEXT, response_format="mp3"):
    voice = {"voice": "tone", "response_format": response_format}
    with client.audio.speech.with_streaming_response.create(model="sandbox/speech", input=text, **voice) as response:
        assert response.headers["content-type"].startswith("audio/")
        return ("speech." + response_format, response.read())


def test_speech_and_transcriptions(client):
    model = {"model": "sandbox/transcription"}
    file = spoken(client)
    whole = client.audio.transcriptions.create(file=file, **model)
    assert (whole.text, whole.usage.type) == (SPEECH_TEXT, "duration")
    words = client.audio.transcriptions.create(
        file=file, response_format="verbose_json", timestamp_granularities=["word", "segment"], **model
    )
    assert [word.word for word in words.words] == SPEECH_TEXT.split()
    assert [segment.text.strip() for segment in words.segments] == ["Good morning.", "How are you?"]
    for subtitles, start in (("srt", "1\n00:00:"), ("vtt", "WEBVTT\n\n00:00:"), ("text", SPEECH_TEXT)):
        text = client.audio.transcriptions.create(file=file, response_format=subtitles, **model)
        assert text.startswith(start)
    diarized = client.audio.transcriptions.create(file=file, response_format="diarized_json", **model)
    assert {segment.speaker for segment in diarized.segments} == {"A"}
    events = list(client.audio.transcriptions.create(file=file, stream=True, **model))
    assert "".join(event.delta for event in events if event.type == "transcript.text.delta") == SPEECH_TEXT
    assert events[-1].type == "transcript.text.done"
    translation = client.audio.translations.create(file=spoken(client, response_format="wav"), **model)
    assert translation.text == SPEECH_TEXT
    with pytest.raises(openai.BadRequestError) as refused:
        client.audio.transcriptions.create(file=("a.mp3", b""), **model)
    assert (refused.value.code, refused.value.param) == ("invalid_value", "file")


def test_chat_with_audio(client):
    data = base64.b64encode(spoken(client, "Why do lighthouses blink?", "wav")[1]).decode()
    answer = client.chat.completions.create(
        model="sandbox/voice",
        modalities=["text", "audio"],
        audio={"voice": "tone", "format": "mp3"},
        messages=[{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}]}],
    )
    audio = answer.choices[0].message.audio
    assert "lighthouses" in audio.transcript
    file = ("answer.mp3", base64.b64decode(audio.data))
    assert client.audio.transcriptions.create(model="sandbox/transcription", file=file).text == audio.transcript
    assert answer.usage.completion_tokens_details.audio_tokens > 100


def test_realtime(origin, token):
    address = origin.replace("http", "ws") + "/v1"
    client = openai.OpenAI(base_url=f"{origin}/v1", websocket_base_url=address, api_key=token)
    with client.realtime.connect(model="sandbox/realtime") as connection:
        connection.session.update(session={"type": "realtime", "output_modalities": ["text"]})
        content = [{"type": "input_text", "text": "Good morning"}]
        connection.conversation.item.create(item={"type": "message", "role": "user", "content": content})
        connection.response.create()
        text = ""
        for event in connection:
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type == "response.done":
                assert event.response.usage.input_tokens == 3
                break
    assert text == "You said: Good morning"
