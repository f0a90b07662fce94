// The official OpenAI client for Go: chat, tools, an error and embeddings.
package clients

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const (
	general  = "sandbox/general"
	question = "What is Gatehouse?"
)

var weather = openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{
	Name: "get_weather",
	Parameters: openai.FunctionParameters{
		"type":       "object",
		"properties": map[string]any{"city": map[string]any{"type": "string"}},
		"required":   []string{"city"},
	},
})

func openaiClient(token string) openai.Client {
	address := os.Getenv("GATEHOUSE_ORIGIN") + "/v1"
	return openai.NewClient(option.WithBaseURL(address), option.WithAPIKey(token), option.WithMaxRetries(0))
}

func ask(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model:    general,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)},
	}
}

func TestOpenAIChatWhole(t *testing.T) {
	client := openaiClient(os.Getenv("GATEHOUSE_TOKEN"))
	answer, err := client.Chat.Completions.New(context.Background(), ask(question))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(answer.Choices[0].Message.Content, "Gatehouse") || answer.Choices[0].FinishReason != "stop" {
		t.Errorf("unexpected choice: %s", answer.RawJSON())
	}
	if usage := answer.Usage; usage.PromptTokens == 0 || usage.TotalTokens != usage.PromptTokens+usage.CompletionTokens {
		t.Errorf("unexpected usage: %s", usage.RawJSON())
	}
}

func TestOpenAIChatStreamed(t *testing.T) {
	client := openaiClient(os.Getenv("GATEHOUSE_TOKEN"))
	request := ask(question)
	request.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(context.Background(), request)
	defer stream.Close()
	chunks := 0
	collected := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		chunks++
		if !collected.AddChunk(stream.Current()) {
			t.Fatalf("the client cannot add chunk %d: %s", chunks, stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if chunks < 3 || !strings.Contains(collected.Choices[0].Message.Content, "Gatehouse") {
		t.Errorf("%d chunks, text %q", chunks, collected.Choices[0].Message.Content)
	}
	if collected.Choices[0].FinishReason != "stop" || collected.Usage.CompletionTokens == 0 {
		t.Errorf("finish reason %q, usage %+v", collected.Choices[0].FinishReason, collected.Usage)
	}
}

func TestOpenAIToolAndItsResult(t *testing.T) {
	client := openaiClient(os.Getenv("GATEHOUSE_TOKEN"))
	request := ask(question)
	request.Tools = []openai.ChatCompletionToolUnionParam{weather}
	request.ToolChoice.OfAuto = openai.String("required")
	first, err := client.Chat.Completions.New(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	choice := first.Choices[0]
	if choice.FinishReason != "tool_calls" || len(choice.Message.ToolCalls) == 0 {
		t.Fatalf("no tool call: %s", first.RawJSON())
	}
	call := choice.Message.ToolCalls[0]
	var arguments struct{ City *string }
	if err := json.Unmarshal([]byte(call.Function.Arguments), &arguments); err != nil || arguments.City == nil {
		t.Errorf("unexpected arguments: %s", call.Function.Arguments)
	}
	request.Messages = append(request.Messages, choice.Message.ToParam())
	for _, each := range choice.Message.ToolCalls {
		request.Messages = append(request.Messages, openai.ToolMessage("Rain.", each.ID))
	}
	request.ToolChoice.OfAuto = openai.String("auto")
	second, err := client.Chat.Completions.New(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	if second.Choices[0].Message.Content == "" {
		t.Errorf("no text after the result: %s", second.RawJSON())
	}
}

func TestOpenAIErrors(t *testing.T) {
	token := os.Getenv("GATEHOUSE_TOKEN")
	limited := ask("Hello\n@sandbox status=429 retry_after=1")
	unknown := ask(question)
	unknown.Model = "sandbox/none"
	for _, one := range []struct {
		name, token string
		request     openai.ChatCompletionNewParams
		status      int
		kind, code  string
	}{
		{"unknown model", token, unknown, 404, "invalid_request_error", "model_not_found"},
		{"wrong token", "gh-wrong", ask(question), 401, "authentication_error", "invalid_api_key"},
		{"rate limit", token, limited, 429, "rate_limit_error", "rate_limit_exceeded"},
	} {
		t.Run(one.name, func(t *testing.T) {
			client := openaiClient(one.token)
			_, err := client.Chat.Completions.New(context.Background(), one.request)
			var failure *openai.Error
			if !errors.As(err, &failure) {
				t.Fatalf("not an error of the client: %v", err)
			}
			if failure.StatusCode != one.status || failure.Type != one.kind || failure.Code != one.code {
				t.Errorf("%d %s", failure.StatusCode, failure.RawJSON())
			}
		})
	}
}

func TestOpenAIEmbeddings(t *testing.T) {
	client := openaiClient(os.Getenv("GATEHOUSE_TOKEN"))
	answer, err := client.Embeddings.New(context.Background(), openai.EmbeddingNewParams{
		Model:      "sandbox/embedding",
		Input:      openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a river", "a boat"}},
		Dimensions: openai.Int(256),
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(answer.Data) != 2 || len(answer.Data[0].Embedding) != 256 || len(answer.Data[1].Embedding) != 256 {
		t.Fatalf("unexpected vectors: %s", answer.RawJSON())
	}
	if answer.Data[1].Index != 1 || answer.Usage.PromptTokens == 0 {
		t.Errorf("index %d, usage %s", answer.Data[1].Index, answer.Usage.RawJSON())
	}
}
