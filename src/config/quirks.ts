/** How one OpenAI-shaped vendor differs from the pattern, as an operator may write it. */
import Type, { type TSchema } from 'typebox'

const optional = <T extends TSchema>(schema: T) => Type.Optional(schema)

export const Quirks = Type.Object(
  {
    stream_usage: optional(Type.Boolean({ description: 'Understands stream_options.include_usage. Default true.' })),
    developer_role: optional(
      Type.Boolean({
        description: 'Understands the role `developer`; otherwise it is sent as `system`. Default false.',
      }),
    ),
    tools: optional(Type.Boolean({ description: 'Understands tools. Default true.' })),
    json_schema: optional(Type.Boolean({ description: 'Understands response_format json_schema. Default true.' })),
    multiple_choices: optional(Type.Boolean({ description: 'Understands n above 1. Default true.' })),
    embedding_base64: optional(
      Type.Boolean({ description: 'Gives embeddings as base64, which is shorter. Default false.' }),
    ),
    embedding_tokens: optional(Type.Boolean({ description: 'Embeds token numbers too. Default true.' })),
    embedding_inputs: optional(
      Type.Integer({ minimum: 1, description: 'How many inputs it embeds in one call. Default 2048.' }),
    ),
    embedding_call_tokens: optional(
      Type.Integer({
        minimum: 1,
        description: 'How many tokens all inputs of one call may have. Default: any number.',
      }),
    ),
    rerank: optional(Type.Boolean({ description: 'Serves /rerank below the base URL. Default false.' })),
    image_stream: optional(
      Type.Boolean({ description: 'Streams partial images. Default: by the name of the model, else false.' }),
    ),
    image_response_format: optional(
      Type.Enum(['b64_json', 'base64', 'url', 'none'], {
        description:
          'How it is asked for images: by which word for their bytes, by their address, or not at all. Default: by the name of the model, else b64_json.',
      }),
    ),
    passthrough: optional(
      Type.Boolean({
        description: "Answers to clients that speak the vendor's own dialect pass as they are. Default true.",
      }),
    ),
  },
  { additionalProperties: false },
)
export type Quirks = Type.Static<typeof Quirks>
