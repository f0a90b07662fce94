//! The client `async-openai` for Rust: chat, tools, errors and embeddings.
use async_openai::config::OpenAIConfig;
use async_openai::error::{ApiErrorResponse, OpenAIError};
use async_openai::types::chat::{CreateChatCompletionRequest, FinishReason};
use async_openai::types::embeddings::CreateEmbeddingRequestArgs;
use async_openai::Client;
use futures::StreamExt;
use serde_json::{from_value, json, Value};
use std::env::var;

const GENERAL: &str = "sandbox/general";
const QUESTION: &str = "What is Gatehouse?";

fn client_with(token: &str) -> Client<OpenAIConfig> {
    let address = format!("{}/v1", var("GATEHOUSE_ORIGIN").unwrap());
    Client::with_config(OpenAIConfig::new().with_api_base(address).with_api_key(token))
}

fn client() -> Client<OpenAIConfig> {
    client_with(&var("GATEHOUSE_TOKEN").unwrap())
}

/// The request as the types of the client hold and serialize it.
fn request(body: Value) -> CreateChatCompletionRequest {
    from_value(body).unwrap()
}

fn ask(model: &str, text: &str) -> Value {
    json!({ "model": model, "messages": [{ "role": "user", "content": text }] })
}

async fn error_of(client: Client<OpenAIConfig>, body: Value) -> ApiErrorResponse {
    match client.chat().create(request(body)).await {
        Err(OpenAIError::ApiError(error)) => error,
        other => panic!("not an error of the API: {other:?}"),
    }
}

#[tokio::test]
async fn chat_whole() {
    let answer = client().chat().create(request(ask(GENERAL, QUESTION))).await.unwrap();
    let choice = &answer.choices[0];
    assert!(choice.message.content.as_deref().unwrap().contains("Gatehouse"));
    assert_eq!(choice.finish_reason, Some(FinishReason::Stop));
    let usage = answer.usage.unwrap();
    assert!(usage.prompt_tokens > 0);
    assert_eq!(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
}

#[tokio::test]
async fn chat_streamed() {
    let mut body = ask(GENERAL, QUESTION);
    body["stream_options"] = json!({ "include_usage": true });
    let mut stream = client().chat().create_stream(request(body)).await.unwrap();
    let (mut text, mut chunks, mut usage, mut reason) = (String::new(), 0, None, None);
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.unwrap();
        chunks += 1;
        for choice in chunk.choices {
            text += choice.delta.content.as_deref().unwrap_or("");
            reason = choice.finish_reason.or(reason);
        }
        usage = chunk.usage.or(usage);
    }
    assert!(chunks >= 3);
    assert!(text.contains("Gatehouse"));
    assert_eq!(reason, Some(FinishReason::Stop));
    assert!(usage.unwrap().completion_tokens > 0);
}

#[tokio::test]
async fn tool_and_its_result() {
    let parameters = json!({ "type": "object", "properties": { "city": { "type": "string" } }, "required": ["city"] });
    let mut body = ask(GENERAL, QUESTION);
    body["tools"] = json!([{ "type": "function", "function": { "name": "get_weather", "parameters": parameters } }]);
    body["tool_choice"] = json!("required");
    let first = client().chat().create(request(body.clone())).await.unwrap();
    let choice = &first.choices[0];
    assert_eq!(choice.finish_reason, Some(FinishReason::ToolCalls));
    let calls = json!(choice.message.tool_calls.as_ref().unwrap());
    assert_eq!(calls[0]["function"]["name"], "get_weather");
    let arguments: Value = serde_json::from_str(calls[0]["function"]["arguments"].as_str().unwrap()).unwrap();
    assert!(arguments["city"].is_string());

    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({ "role": "assistant", "tool_calls": calls }));
    for call in calls.as_array().unwrap() {
        messages.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": "Rain." }));
    }
    body["tool_choice"] = json!("auto");
    let second = client().chat().create(request(body)).await.unwrap();
    assert!(!second.choices[0].message.content.as_deref().unwrap().is_empty());
}

#[tokio::test]
async fn unknown_model() {
    let error = error_of(client(), ask("sandbox/none", QUESTION)).await;
    assert_eq!(error.status_code, 404);
    assert_eq!(error.api_error.r#type.as_deref(), Some("invalid_request_error"));
    assert_eq!(error.api_error.code.as_deref(), Some("model_not_found"));
}

#[tokio::test]
async fn wrong_token() {
    let error = error_of(client_with("gh-wrong"), ask(GENERAL, QUESTION)).await;
    assert_eq!(error.status_code, 401);
    assert_eq!(error.api_error.r#type.as_deref(), Some("authentication_error"));
    assert_eq!(error.api_error.code.as_deref(), Some("invalid_api_key"));
}

#[tokio::test]
async fn rate_limit() {
    let error = error_of(client(), ask(GENERAL, "Hello\n@sandbox status=429 retry_after=1")).await;
    assert_eq!(error.status_code, 429);
    assert_eq!(error.api_error.r#type.as_deref(), Some("rate_limit_error"));
    assert_eq!(error.api_error.code.as_deref(), Some("rate_limit_exceeded"));
}

#[tokio::test]
async fn embeddings() {
    let texts = vec!["a river", "a boat"];
    let request = CreateEmbeddingRequestArgs::default()
        .model("sandbox/embedding")
        .input(texts)
        .dimensions(256u32)
        .build()
        .unwrap();
    let answer = client().embeddings().create(request).await.unwrap();
    assert_eq!(answer.data.len(), 2);
    assert!(answer.data.iter().all(|one| one.embedding.len() == 256));
    assert_eq!(answer.data[1].index, 1);
    assert!(answer.usage.prompt_tokens > 0);
}
