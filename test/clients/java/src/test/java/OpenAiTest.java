// The official OpenAI client for Java: chat, tools, errors and embeddings.
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.openai.client.OpenAIClient;
import com.openai.client.okhttp.OpenAIOkHttpClient;
import com.openai.core.JsonValue;
import com.openai.errors.NotFoundException;
import com.openai.errors.OpenAIServiceException;
import com.openai.errors.RateLimitException;
import com.openai.errors.UnauthorizedException;
import com.openai.helpers.ChatCompletionAccumulator;
import com.openai.models.FunctionDefinition;
import com.openai.models.FunctionParameters;
import com.openai.models.chat.completions.ChatCompletion;
import com.openai.models.chat.completions.ChatCompletionCreateParams;
import com.openai.models.chat.completions.ChatCompletionFunctionTool;
import com.openai.models.chat.completions.ChatCompletionStreamOptions;
import com.openai.models.chat.completions.ChatCompletionToolChoiceOption;
import com.openai.models.chat.completions.ChatCompletionToolMessageParam;
import com.openai.models.embeddings.EmbeddingCreateParams;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class OpenAiTest {
  private static final String GENERAL = "sandbox/general";
  private static final String QUESTION = "What is Gatehouse?";

  private final OpenAIClient client = clientWith(System.getenv("GATEHOUSE_TOKEN"));

  private static OpenAIClient clientWith(String token) {
    String address = System.getenv("GATEHOUSE_ORIGIN") + "/v1";
    return OpenAIOkHttpClient.builder().baseUrl(address).apiKey(token).maxRetries(0).build();
  }

  private static ChatCompletionCreateParams.Builder ask(String text) {
    return ChatCompletionCreateParams.builder().model(GENERAL).addUserMessage(text);
  }

  private ChatCompletion send(ChatCompletionCreateParams.Builder request) {
    return client.chat().completions().create(request.build());
  }

  @Test
  void chatWhole() {
    var answer = send(ask(QUESTION));
    var choice = answer.choices().get(0);
    assertTrue(choice.message().content().orElseThrow().contains("Gatehouse"));
    assertEquals("stop", choice.finishReason().asString());
    var usage = answer.usage().orElseThrow();
    assertTrue(usage.promptTokens() > 0);
    assertEquals(usage.totalTokens(), usage.promptTokens() + usage.completionTokens());
  }

  @Test
  void chatStreamed() {
    var request = ask(QUESTION).streamOptions(ChatCompletionStreamOptions.builder().includeUsage(true).build());
    var collected = ChatCompletionAccumulator.create();
    long chunks;
    try (var response = client.chat().completions().createStreaming(request.build())) {
      chunks = response.stream().peek(collected::accumulate).toList().size();
    }
    var answer = collected.chatCompletion();
    assertTrue(chunks >= 3, () -> "the text came in one piece");
    assertTrue(answer.choices().get(0).message().content().orElseThrow().contains("Gatehouse"));
    assertEquals("stop", answer.choices().get(0).finishReason().asString());
    assertTrue(answer.usage().orElseThrow().completionTokens() > 0);
  }

  @Test
  void toolAndItsResult() {
    var parameters = FunctionParameters.builder()
        .putAdditionalProperty("type", JsonValue.from("object"))
        .putAdditionalProperty("properties", JsonValue.from(Map.of("city", Map.of("type", "string"))))
        .putAdditionalProperty("required", JsonValue.from(List.of("city")))
        .build();
    var function = FunctionDefinition.builder().name("get_weather").parameters(parameters).build();
    var request = ask(QUESTION)
        .addTool(ChatCompletionFunctionTool.builder().function(function).build())
        .toolChoice(ChatCompletionToolChoiceOption.Auto.REQUIRED);
    var choice = send(request).choices().get(0);
    assertEquals("tool_calls", choice.finishReason().asString());
    var calls = choice.message().toolCalls().orElseThrow();
    var first = calls.get(0).asFunction().function();
    assertEquals("get_weather", first.name());
    assertTrue(first.arguments(Map.class).get("city") instanceof String);

    request.addMessage(choice.message()).toolChoice(ChatCompletionToolChoiceOption.Auto.AUTO);
    for (var call : calls) {
      var id = call.asFunction().id();
      request.addMessage(ChatCompletionToolMessageParam.builder().toolCallId(id).content("Rain.").build());
    }
    assertFalse(send(request).choices().get(0).message().content().orElseThrow().isEmpty());
  }

  private static void assertError(OpenAIServiceException error, String type, String code) {
    assertEquals(type, error.type().orElse(null));
    assertEquals(code, error.code().orElse(null));
  }

  @Test
  void unknownModel() {
    var request = ask(QUESTION).model("sandbox/none");
    var error = assertThrows(NotFoundException.class, () -> send(request));
    assertError(error, "invalid_request_error", "model_not_found");
  }

  @Test
  void wrongToken() {
    var request = ask(QUESTION).build();
    var stranger = clientWith("gh-wrong");
    var error = assertThrows(UnauthorizedException.class, () -> stranger.chat().completions().create(request));
    assertError(error, "authentication_error", "invalid_api_key");
  }

  @Test
  void rateLimit() {
    var error = assertThrows(RateLimitException.class, () -> send(ask("Hello\n@sandbox status=429 retry_after=1")));
    assertError(error, "rate_limit_error", "rate_limit_exceeded");
  }

  @Test
  void embeddings() {
    var answer = client.embeddings().create(EmbeddingCreateParams.builder()
        .model("sandbox/embedding")
        .inputOfArrayOfStrings(List.of("a river", "a boat"))
        .dimensions(256)
        .build());
    assertEquals(2, answer.data().size());
    for (var one : answer.data()) assertEquals(256, one.embedding().size());
    assertEquals(1, answer.data().get(1).index());
    assertTrue(answer.usage().promptTokens() > 0);
  }
}
