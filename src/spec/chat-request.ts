/**
 * A chat completion request (specification 2.2 and 2.3) with the further fields that clients send today.
 * The bounds here are those all chat models share; a model's own are catalogue data (`models/limits.ts`).
 * `null` is treated as absent before this schema is applied; unknown top-level fields are ignored.
 */
import Type from 'typebox'
import { Message } from './message.ts'

const FunctionTool = Type.Object({
  type: Type.Literal('function'),
  function: Type.Object({
    name: Type.String({ minLength: 1 }),
    description: Type.Optional(Type.String()),
    parameters: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    strict: Type.Optional(Type.Union([Type.Boolean(), Type.Null()])),
  }),
})
export type FunctionTool = Type.Static<typeof FunctionTool>

const ToolChoice = Type.Union([
  Type.Enum(['none', 'auto', 'required']),
  Type.Object({ type: Type.Literal('function'), function: Type.Object({ name: Type.String() }) }),
  Type.Object({
    type: Type.Literal('allowed_tools'),
    allowed_tools: Type.Object({
      mode: Type.Enum(['auto', 'required']),
      tools: Type.Array(Type.Record(Type.String(), Type.Unknown())),
    }),
  }),
])

const ResponseFormat = Type.Union([
  Type.Object({ type: Type.Enum(['text', 'json_object']) }),
  Type.Object({
    type: Type.Literal('json_schema'),
    json_schema: Type.Object({
      name: Type.String(),
      description: Type.Optional(Type.String()),
      schema: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      strict: Type.Optional(Type.Union([Type.Boolean(), Type.Null()])),
    }),
  }),
])

const WebSearch = Type.Object(
  {
    enable: Type.Optional(Type.Boolean({ default: false })),
    search_context_size: Type.Optional(Type.Enum(['low', 'medium', 'high'])),
    max_results: Type.Optional(Type.Integer({ minimum: 1 })),
    user_location: Type.Optional(Type.Unknown()),
  },
  { description: 'Unknown members are kept and forwarded.' },
)

export const ChatRequest = Type.Object(
  {
    model: Type.String({ minLength: 1, description: 'Model id, with or without the provider prefix.' }),
    messages: Type.Array(Message, { minItems: 1 }),
    frequency_penalty: Type.Optional(Type.Number({ minimum: -2, maximum: 2 })),
    presence_penalty: Type.Optional(Type.Number({ minimum: -2, maximum: 2 })),
    temperature: Type.Optional(Type.Number({ minimum: 0, maximum: 2, description: 'Higher is more random.' })),
    top_p: Type.Optional(Type.Number({ minimum: 0, maximum: 1, description: 'Nucleus sampling.' })),
    max_tokens: Type.Optional(Type.Integer({ minimum: 1, description: 'The upper bound depends on the model.' })),
    stream: Type.Optional(Type.Boolean({ default: false })),
    // Extra fields of some models (2.3).
    repetition_penalty: Type.Optional(Type.Number({ minimum: 0, description: '1.0 means no penalty.' })),
    thinking_enabled: Type.Optional(Type.Boolean({ default: false, description: 'Enables thinking/reasoning mode.' })),
    web_search: Type.Optional(WebSearch),
    // What clients send beyond the specification.
    max_completion_tokens: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Alias of max_tokens; wins if both are given.' }),
    ),
    stream_options: Type.Optional(
      Type.Object({
        include_usage: Type.Optional(Type.Union([Type.Boolean(), Type.Null()])),
        include_obfuscation: Type.Optional(Type.Union([Type.Boolean(), Type.Null()])),
      }),
    ),
    tools: Type.Optional(Type.Array(FunctionTool)),
    tool_choice: Type.Optional(ToolChoice),
    parallel_tool_calls: Type.Optional(Type.Boolean()),
    response_format: Type.Optional(ResponseFormat),
    n: Type.Optional(Type.Integer({ minimum: 1, maximum: 128 })),
    stop: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 4 })])),
    seed: Type.Optional(Type.Integer()),
    logprobs: Type.Optional(Type.Boolean()),
    top_logprobs: Type.Optional(Type.Integer({ minimum: 0, maximum: 20 })),
    logit_bias: Type.Optional(Type.Record(Type.String(), Type.Number())),
    reasoning_effort: Type.Optional(Type.Enum(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'])),
    reasoning_budget: Type.Optional(
      Type.Integer({
        minimum: -1,
        description: 'Tokens for reasoning, where the model counts them; 0 is none, -1 as many as the model sees fit.',
      }),
    ),
    reasoning_summary: Type.Optional(
      Type.Enum(['auto', 'concise', 'detailed'], {
        description: 'How much is told of the reasoning, where the vendor tells no more than a summary.',
      }),
    ),
    top_k: Type.Optional(Type.Integer({ minimum: 0, description: 'Sample from the best so many only.' })),
    provider_options: Type.Optional(
      Type.Record(Type.String(), Type.Record(Type.String(), Type.Unknown()), {
        description: "A vendor's own options under the name of its kind; other vendors do not see them.",
      }),
    ),
    verbosity: Type.Optional(Type.String()),
    user: Type.Optional(Type.String()),
    safety_identifier: Type.Optional(Type.String()),
    metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    store: Type.Optional(Type.Boolean()),
    service_tier: Type.Optional(Type.String()),
    prediction: Type.Optional(Type.Unknown()),
    prompt_cache_key: Type.Optional(Type.String()),
    prompt_cache_options: Type.Optional(Type.Unknown()),
    modalities: Type.Optional(Type.Array(Type.String())),
    audio: Type.Optional(Type.Unknown()),
    web_search_options: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    functions: Type.Optional(
      Type.Array(
        Type.Object({
          name: Type.String({ minLength: 1 }),
          description: Type.Optional(Type.String()),
          parameters: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
        }),
      ),
    ),
    function_call: Type.Optional(Type.Union([Type.Enum(['none', 'auto']), Type.Object({ name: Type.String() })])),
  },
  { title: 'ChatRequest' },
)
export type ChatRequest = Type.Static<typeof ChatRequest>
export type ChatRequestField = keyof ChatRequest

/** Fields that only some models have: their configuration names them. */
export const EXTRA_FIELDS = ['repetition_penalty', 'thinking_enabled', 'web_search'] as const
