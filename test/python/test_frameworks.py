"""LangChain, Instructor, Pydantic AI and Cohere's client, each with a model of the sandbox."""
import anthropic
import cohere
import instructor
import openai
import pytest
from google import genai
from google.genai import types
from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel
from pydantic_ai import Agent
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.google import GoogleProvider
from pydantic_ai.providers.openai import OpenAIProvider

GENERAL = "sandbox/general"
QUESTION = "What is Gatehouse?"
CALL = "Call get_weather with the city Oslo."


class Place(BaseModel):
    name: str
    population: int


def chat_models(origin, token):
    return {
        "chat completions": ChatOpenAI(
            model=GENERAL, base_url=f"{origin}/v1", api_key=token, stream_usage=True
        ),
        "responses": ChatOpenAI(model=GENERAL, base_url=f"{origin}/v1", api_key=token, use_responses_api=True),
        "messages": ChatAnthropic(model=GENERAL, base_url=origin, api_key=token, max_tokens=500),
    }


@pytest.mark.parametrize("api", ["chat completions", "responses", "messages"])
class TestLangChain:
    def test_invokes_and_streams(self, origin, token, api):
        model = chat_models(origin, token)[api]
        whole = model.invoke(QUESTION)
        assert "Gatehouse" in whole.text
        assert whole.usage_metadata["output_tokens"] > 0
        chunks = list(model.stream(QUESTION))
        assert "Gatehouse" in "".join(chunk.text for chunk in chunks)
        assert sum((chunk.usage_metadata or {}).get("output_tokens", 0) for chunk in chunks) > 0

    def test_structured_output(self, origin, token, api):
        assert isinstance(chat_models(origin, token)[api].with_structured_output(Place).invoke("A place."), Place)

    def test_an_agent_calls_its_tool_and_ends(self, origin, token, api):
        calls = []

        def get_weather(city: str) -> str:
            """The weather of a place."""
            calls.append(city)
            return "Rain."

        agent = create_agent(chat_models(origin, token)[api], tools=[get_weather])
        result = agent.invoke({"messages": [HumanMessage(CALL)]})
        assert len(calls) == 1
        assert result["messages"][-1].text


def test_langchain_embeddings(origin, token):
    # Its default, to send token numbers, would first download the vocabulary.
    model = OpenAIEmbeddings(
        model="sandbox/embedding", base_url=f"{origin}/v1", api_key=token, check_embedding_ctx_length=False
    )
    assert len(model.embed_documents(["a river", "a boat"])) == 2


MODES = ["tools", "json_schema", "responses", "messages"]


@pytest.mark.parametrize("mode", MODES)
def test_instructor(origin, token, mode):
    openai_client = openai.OpenAI(base_url=f"{origin}/v1", api_key=token)
    clients = {
        "tools": lambda: instructor.from_openai(openai_client),
        "json_schema": lambda: instructor.from_openai(openai_client, mode=instructor.Mode.JSON_SCHEMA),
        "responses": lambda: instructor.from_openai(openai_client, mode=instructor.Mode.RESPONSES_TOOLS),
        "messages": lambda: instructor.from_anthropic(anthropic.Anthropic(base_url=origin, api_key=token)),
    }
    place = clients[mode]().chat.completions.create(
        model=GENERAL, max_tokens=500, messages=[{"role": "user", "content": "A place."}], response_model=Place
    )
    assert isinstance(place, Place)


def pydantic_ai_model(origin, token, api):
    options = types.HttpOptions(base_url=origin)
    openai_provider = OpenAIProvider(base_url=f"{origin}/v1", api_key=token)
    return {
        "chat completions": lambda: OpenAIChatModel(GENERAL, provider=openai_provider),
        "responses": lambda: OpenAIResponsesModel(GENERAL, provider=openai_provider),
        "contentgen": lambda: GoogleModel(
            GENERAL, provider=GoogleProvider(client=genai.Client(api_key=token, http_options=options))
        ),
    }[api]()


# Without "messages": pydantic-ai 2.38 calls `BetaMessageParam`, which is a union since anthropic 2 and cannot be called.
@pytest.mark.parametrize("api", ["chat completions", "responses", "contentgen"])
class TestPydanticAi:
    def test_answers_and_calls_a_tool(self, origin, token, api):
        calls = []
        agent = Agent(pydantic_ai_model(origin, token, api))

        @agent.tool_plain
        def get_weather(city: str) -> str:
            """The weather of a place."""
            calls.append(city)
            return "Rain."

        result = agent.run_sync(CALL)
        assert result.output
        assert len(calls) == 1

    def test_structured_output(self, origin, token, api):
        agent = Agent(pydantic_ai_model(origin, token, api), output_type=Place)
        assert isinstance(agent.run_sync("A place.").output, Place)


def test_cohere_reranks(origin, token):
    documents = ["Boats leave at noon.", "The snow melts in April."]
    for client in (cohere.Client(base_url=origin, api_key=token), cohere.ClientV2(base_url=origin, api_key=token)):
        answer = client.rerank(model="sandbox/rerank", query="When does the snow melt?", documents=documents, top_n=1)
        assert [result.index for result in answer.results] == [1]
    with pytest.raises(cohere.UnauthorizedError):
        cohere.ClientV2(base_url=origin, api_key="wrong").rerank(model="sandbox/rerank", query="x", documents=documents)
