/**
 * The legacy completions API: a text that continues a prompt.
 * https://developers.openai.com/api/reference/resources/completions/methods/create
 */
import Type from 'typebox'
import { ChatRequest } from './chat-request.ts'
import { flag, integer, orNull, text, titled } from './fields.ts'
import { Usage } from './usage.ts'

const shared = ChatRequest.properties

/** Each prompt is one request to the provider; the `openai` integration of LangChain sends 20 at a time. */
const MAX_PROMPTS = 20
/** OpenAI's bounds of `best_of` and `logprobs`. */
const MAX_CANDIDATES = 20
const MAX_LOGPROBS = 5

export const TextCompletionRequest = titled('TextCompletionRequest', {
  model: shared.model,
  prompt: Type.Union([Type.String(), Type.Array(Type.String(), { minItems: 1, maxItems: MAX_PROMPTS })], {
    description: 'One text, or several that are completed separately. Arrays of tokens are refused.',
  }),
  suffix: text('The text after the completion. The model is asked to write what is between.'),
  max_tokens: integer({ minimum: 1, default: 16 }, 'The maximum depends on the model.'),
  n: integer({ minimum: 1, maximum: 128, default: 1 }, 'Completions of each prompt.'),
  best_of: integer(
    { minimum: 1, maximum: MAX_CANDIDATES },
    'Candidates of each prompt, of which the `n` most likely are returned. At least `n`.',
  ),
  echo: flag({ default: false }, 'Put the prompt before each completion.'),
  logprobs: integer(
    { minimum: 0, maximum: MAX_LOGPROBS },
    'Return log probabilities, with this many alternatives at each token.',
  ),
  stop: shared.stop,
  stream: shared.stream,
  stream_options: shared.stream_options,
  temperature: shared.temperature,
  top_p: shared.top_p,
  frequency_penalty: shared.frequency_penalty,
  presence_penalty: shared.presence_penalty,
  logit_bias: shared.logit_bias,
  seed: shared.seed,
  user: shared.user,
})
export type TextCompletionRequest = Type.Static<typeof TextCompletionRequest>

const TextLogprobs = titled('TextLogprobs', {
  tokens: Type.Array(Type.String()),
  token_logprobs: Type.Array(Type.Number()),
  top_logprobs: Type.Array(Type.Record(Type.String(), Type.Number())),
  text_offset: Type.Array(Type.Integer({ minimum: 0 }), { description: 'Where each token starts in `text`.' }),
})
export type TextLogprobs = Type.Static<typeof TextLogprobs>

const FinishReason = Type.Enum(['stop', 'length', 'content_filter'])

const TextChoice = Type.Object({
  text: Type.String(),
  index: Type.Integer({ minimum: 0, description: 'The completions of the first prompt come first.' }),
  logprobs: orNull(TextLogprobs),
  finish_reason: FinishReason,
})
export type TextChoice = Type.Static<typeof TextChoice>

const head = {
  id: Type.String(),
  object: Type.Literal('text_completion'),
  created: Type.Integer(),
  model: Type.String({ description: 'The full public id of the model that answered.' }),
  system_fingerprint: Type.Optional(Type.String()),
}

export const TextCompletion = titled('TextCompletion', { ...head, choices: Type.Array(TextChoice), usage: Usage })
export type TextCompletion = Type.Static<typeof TextCompletion>

export const TextCompletionChunk = titled('TextCompletionChunk', {
  ...head,
  choices: Type.Array(Type.Object({ ...TextChoice.properties, finish_reason: orNull(FinishReason) })),
  usage: Type.Optional(orNull(Usage)),
})
