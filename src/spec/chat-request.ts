/**
 * A chat completion request (specification 2.2 and 2.3), with the further fields that clients send today. These
 * bounds are common to all chat models; the bounds of one model are catalogue data (`models/limits.ts`). `null` is
 * removed before this schema is applied; unknown top-level fields are ignored.
 */
import Type from 'typebox'
import { flag, integer, list, number, oneOf, orNull, text, titled } from './fields.ts'
import { Message } from './message.ts'

const FunctionTool = Type.Object({
  type: Type.Literal('function'),
  function: Type.Object({
    name: Type.String({ minLength: 1 }),
    description: Type.Optional(Type.String()),
    parameters: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    strict: Type.Optional(orNull(Type.Boolean())),
  }),
})
export type FunctionTool = Type.Static<typeof FunctionTool>

const CustomTool = Type.Object(
  {
    type: Type.Literal('custom'),
    custom: Type.Object({
      name: Type.String({ minLength: 1 }),
      description: Type.Optional(Type.String()),
      format: Type.Optional(
        Type.Union([
          Type.Object({ type: Type.Literal('text') }),
          Type.Object({
            type: Type.Literal('grammar'),
            grammar: Type.Object({ definition: Type.String(), syntax: Type.Enum(['lark', 'regex']) }),
          }),
        ]),
      ),
    }),
  },
  { description: 'A tool that takes free text, which may have to follow a grammar.' },
)
export type CustomTool = Type.Static<typeof CustomTool>

const ToolChoice = Type.Union(
  [
    Type.Enum(['none', 'auto', 'required']),
    Type.Object({ type: Type.Literal('function'), function: Type.Object({ name: Type.String() }) }),
    Type.Object({ type: Type.Literal('custom'), custom: Type.Object({ name: Type.String() }) }),
    Type.Object({
      type: Type.Literal('allowed_tools'),
      allowed_tools: Type.Object({
        mode: Type.Enum(['auto', 'required']),
        tools: Type.Array(Type.Record(Type.String(), Type.Unknown())),
      }),
    }),
  ],
  { description: 'Whether, and which, tool the model must call.' },
)

const ResponseFormat = Type.Union(
  [
    Type.Object({ type: Type.Enum(['text', 'json_object']) }),
    Type.Object({
      type: Type.Literal('json_schema'),
      json_schema: Type.Object({
        name: Type.String(),
        description: Type.Optional(Type.String()),
        schema: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
        strict: Type.Optional(orNull(Type.Boolean())),
      }),
    }),
  ],
  { description: '`json_object` for any JSON object, `json_schema` for a schema.' },
)

const WebSearch = Type.Object(
  {
    enable: Type.Optional(Type.Boolean({ default: false })),
    search_context_size: Type.Optional(Type.Enum(['low', 'medium', 'high'])),
    max_results: Type.Optional(Type.Integer({ minimum: 1 })),
    user_location: Type.Optional(Type.Unknown()),
  },
  {
    description:
      '`{"enable": true}` turns web search on; may have `search_context_size` (`low`, `medium`, `high`), `max_results` and `user_location`; other members are forwarded. Sources arrive as `annotations` of type `url_citation`. Of models with this field.',
  },
)

const FORWARDED = 'Forwarded to providers that support it.'

export const ChatRequest = titled('ChatRequest', {
  model: Type.String({ minLength: 1, description: 'Model id, with or without the provider prefix.' }),
  messages: Type.Array(Message, { minItems: 1, description: 'At least one message.' }),
  frequency_penalty: number({ minimum: -2, maximum: 2 }, 'Above 0, tokens that occurred often become less likely.'),
  presence_penalty: number({ minimum: -2, maximum: 2 }, 'Above 0, tokens that occurred become less likely.'),
  temperature: number({ minimum: 0, maximum: 2 }, 'Higher is more random.'),
  top_p: number({ minimum: 0, maximum: 1 }, 'Nucleus sampling.'),
  max_tokens: integer({ minimum: 1 }, 'The maximum depends on the model.'),
  stream: flag({ default: false }, 'Whether the response is an event stream.'),
  // Extra fields of some models (2.3).
  repetition_penalty: number({ minimum: 0 }, '1.0 means no penalty. Of models with this field.'),
  thinking_enabled: flag(
    { default: false },
    'Turns reasoning on; it arrives in `reasoning_content`. Of models with this field.',
  ),
  web_search: Type.Optional(WebSearch),
  // Fields that clients send in addition to the specification's.
  max_completion_tokens: integer({ minimum: 1 }, 'A synonym of `max_tokens` that takes precedence.'),
  stream_options: Type.Optional(
    Type.Object(
      {
        include_usage: Type.Optional(orNull(Type.Boolean())),
        include_obfuscation: Type.Optional(orNull(Type.Boolean())),
      },
      { description: '`{"include_usage": true}` adds the usage to a stream.' },
    ),
  ),
  usage: Type.Optional(
    Type.Object(
      { include: Type.Optional(orNull(Type.Boolean())) },
      {
        description: '`{"include": true}` adds `cost` to the usage, and the usage to a stream. Not forwarded.',
      },
    ),
  ),
  tools: list(
    Type.Union([FunctionTool, CustomTool]),
    'Functions and custom tools that the model may call; also `mcp`, as in `/v1/responses`.',
  ),
  tool_choice: Type.Optional(ToolChoice),
  parallel_tool_calls: flag('Whether a response may have several tool calls.'),
  response_format: Type.Optional(ResponseFormat),
  n: integer({ minimum: 1, maximum: 128 }, 'Number of choices. Default 1.'),
  stop: Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 4 })], {
      description: 'Stop sequences, at most four.',
    }),
  ),
  seed: integer('Makes sampling repeatable, as far as the provider can.'),
  logprobs: flag('Return the log probabilities of tokens.'),
  top_logprobs: integer({ minimum: 0, maximum: 20 }, 'Alternatives at each token, with `logprobs`.'),
  logit_bias: Type.Optional(Type.Record(Type.String(), Type.Number(), { description: 'Bias by token number.' })),
  reasoning_effort: oneOf(['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'], FORWARDED),
  reasoning_budget: integer(
    { minimum: -1 },
    'Token budget for reasoning; 0 turns reasoning off, -1 lets the model decide.',
  ),
  reasoning_summary: oneOf(
    ['auto', 'concise', 'detailed'],
    'Length of the summary, where the provider shows only a summary of the reasoning.',
  ),
  top_k: integer({ minimum: 0 }, 'Sample only from the `top_k` most likely tokens.'),
  verbosity: text(FORWARDED),
  user: text(FORWARDED),
  safety_identifier: text(FORWARDED),
  metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: FORWARDED })),
  store: flag(FORWARDED),
  service_tier: text(FORWARDED),
  prediction: Type.Optional(Type.Unknown({ description: FORWARDED })),
  prompt_cache_key: text(FORWARDED),
  prompt_cache_options: Type.Optional(Type.Unknown({ description: FORWARDED })),
  modalities: list(
    Type.String(),
    '`text`, and `audio` for a spoken answer: `audio` of the message, with its `transcript`.',
  ),
  audio: Type.Optional(
    Type.Unknown({ description: '`voice` and `format` of it: `wav`, `mp3`, ...; streamed `pcm16`.' }),
  ),
  web_search_options: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: 'Web search as the openai libraries request it, on models with `web_search`.',
    }),
  ),
  functions: list(
    Type.Object({
      name: Type.String({ minLength: 1 }),
      description: Type.Optional(Type.String()),
      parameters: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
    }),
    'The older form of `tools`.',
  ),
  function_call: Type.Optional(
    Type.Union([Type.Enum(['none', 'auto']), Type.Object({ name: Type.String() })], {
      description: 'The older form of `tool_choice`.',
    }),
  ),
})
export type ChatRequest = Type.Static<typeof ChatRequest>

/** Fields that only some models support: their configuration lists them. */
export const EXTRA_FIELDS = ['repetition_penalty', 'thinking_enabled', 'web_search'] as const
