// The official Anthropic client for Go: messages, tools and an error.
package clients

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func anthropicClient() anthropic.Client {
	return anthropic.NewClient(
		option.WithBaseURL(os.Getenv("GATEHOUSE_ORIGIN")),
		option.WithAPIKey(os.Getenv("GATEHOUSE_TOKEN")),
		option.WithMaxRetries(0),
	)
}

func message(model string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model:     anthropic.Model(model),
		MaxTokens: 1000,
		Messages:  []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(question))},
	}
}

func TestAnthropicMessageWhole(t *testing.T) {
	client := anthropicClient()
	answer, err := client.Messages.New(context.Background(), message(general))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(answer.Content[0].AsText().Text, "Gatehouse") || answer.StopReason != "end_turn" {
		t.Errorf("unexpected message: %s", answer.RawJSON())
	}
	if answer.Usage.InputTokens == 0 || answer.Usage.OutputTokens == 0 {
		t.Errorf("unexpected usage: %s", answer.Usage.RawJSON())
	}
}

func TestAnthropicMessageStreamed(t *testing.T) {
	client := anthropicClient()
	stream := client.Messages.NewStreaming(context.Background(), message(general))
	defer stream.Close()
	deltas := 0
	collected := anthropic.Message{}
	for stream.Next() {
		event := stream.Current()
		if err := collected.Accumulate(event); err != nil {
			t.Fatal(err)
		}
		if event.Type == "content_block_delta" {
			deltas++
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if deltas < 2 || !strings.Contains(collected.Content[0].AsText().Text, "Gatehouse") {
		t.Errorf("%d deltas, content %+v", deltas, collected.Content)
	}
	if collected.StopReason != "end_turn" || collected.Usage.OutputTokens == 0 {
		t.Errorf("stop reason %q, usage %+v", collected.StopReason, collected.Usage)
	}
}

func TestAnthropicToolAndItsResult(t *testing.T) {
	client := anthropicClient()
	request := message(general)
	schema := anthropic.ToolInputSchemaParam{
		Properties: map[string]any{"city": map[string]any{"type": "string"}},
		Required:   []string{"city"},
	}
	request.Tools = []anthropic.ToolUnionParam{anthropic.ToolUnionParamOfTool(schema, "get_weather")}
	request.ToolChoice.OfAny = &anthropic.ToolChoiceAnyParam{}
	first, err := client.Messages.New(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	results := []anthropic.ContentBlockParamUnion{}
	for _, block := range first.Content {
		if block.Type != "tool_use" {
			continue
		}
		var input struct{ City *string }
		if err := json.Unmarshal(block.AsToolUse().Input, &input); err != nil || input.City == nil {
			t.Errorf("unexpected input: %s", block.RawJSON())
		}
		results = append(results, anthropic.NewToolResultBlock(block.ID, "Rain.", false))
	}
	if first.StopReason != "tool_use" || len(results) == 0 {
		t.Fatalf("no tool call: %s", first.RawJSON())
	}
	request.Messages = append(request.Messages, first.ToParam(), anthropic.NewUserMessage(results...))
	request.ToolChoice = anthropic.ToolChoiceUnionParam{}
	second, err := client.Messages.New(context.Background(), request)
	if err != nil {
		t.Fatal(err)
	}
	if len(second.Content) == 0 {
		t.Errorf("no content after the result: %s", second.RawJSON())
	}
}

func TestAnthropicError(t *testing.T) {
	client := anthropicClient()
	_, err := client.Messages.New(context.Background(), message("sandbox/none"))
	var failure *anthropic.Error
	if !errors.As(err, &failure) {
		t.Fatalf("not an error of the client: %v", err)
	}
	if failure.StatusCode != 404 || failure.Type() != "not_found_error" || failure.RequestID == "" {
		t.Errorf("%d %q %s", failure.StatusCode, failure.RequestID, failure.RawJSON())
	}
}
