/** How an OpenAI-compatible provider differs from OpenAI's API, as an operator may configure it. */
import Type from 'typebox'
import { flag, integer, list, oneOf, section } from '../../spec/fields.ts'

export const Quirks = section({
  stream_usage: flag('Supports stream_options.include_usage. Default true.'),
  developer_role: flag('The role `developer`; else `system`. Default false.'),
  tools: flag('Supports tools. Default true.'),
  custom_tools: flag('Custom tools and allowed_tools. Default false; true for responses-compat.'),
  json_schema: flag('Supports response_format json_schema. Default true.'),
  multiple_choices: flag('Supports n above 1. Default true.'),
  embedding_base64: flag('Returns embeddings as base64. Default false.'),
  embedding_tokens: flag('Embeds token numbers. Default true.'),
  embedding_inputs: integer({ minimum: 1 }, 'Inputs of one embedding call. Default 2048.'),
  embedding_call_tokens: integer({ minimum: 1 }, 'Tokens of one embedding call. Default: no limit.'),
  rerank: flag('Serves /rerank below the base URL. Default false.'),
  image_stream: flag('Streams partial images. Default: by the name of the model, else false.'),
  image_response_format: oneOf(
    ['b64_json', 'base64', 'url', 'none'],
    'What is sent for images. Default: by the name of the model, else b64_json.',
  ),
  passthrough: flag('Responses to clients of its own API pass unchanged. Default true.'),
})
export type Quirks = Type.Static<typeof Quirks>

export const Passthrough = section(
  {
    applies_to: oneOf(['limited_tokens', 'all_tokens'], 'Whose requests are limited. Default limited_tokens.'),
    allow: list(Type.String({ minLength: 1 }), 'Further fields, such as tools.image_generation.'),
  },
  'What limited tokens may pass through.',
)
