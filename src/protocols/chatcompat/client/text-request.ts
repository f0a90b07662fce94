/** Decodes a text completion request to one chat request for each prompt. Errors name the client's field. */
import Type from 'typebox'
import { checker } from '../../../kit/checker.ts'
import { diagnose } from '../../../kit/diagnose.ts'
import type { JsonRecord } from '../../../kit/json.ts'
import { GatewayError, invalidValue } from '../../../spec/error.ts'
import { TextCompletionRequest } from '../../../spec/text-completion.ts'
import type { ChatRequest } from '../../shared/canonical.ts'
import { errorTranslator, presentMembers, refusalOf, refusedField, withParam } from '../../shared/request-error.ts'
import { parseChatRequest } from './request.ts'

/** The fields that chat completions do not have, or have with another meaning. */
const Own = Type.Pick(TextCompletionRequest, ['prompt', 'suffix', 'n', 'best_of', 'echo', 'logprobs'])
const check = checker(Own)

/** OpenAI's documented default. */
const DEFAULT_MAX_TOKENS = 16

export type TextCompletionInput = ReturnType<typeof parseTextCompletion>

/** Treats `null` as absent. Throws GatewayError that names the field and its rule. */
export function parseTextCompletion(body: unknown) {
  const given = presentMembers(body)
  assertSupported(given)
  const own: unknown = given
  if (!check.Check(own)) throw refusalOf(diagnose(Own, own))
  const { prompt, suffix = '', n = 1, best_of = n, echo = false, logprobs } = own
  assertConsistent({ n, best_of, echo, logprobs, stream: given.stream })

  const chat: JsonRecord = { max_tokens: DEFAULT_MAX_TOKENS, ...given }
  if (given.max_completion_tokens !== undefined && given.max_tokens === undefined) delete chat.max_tokens
  for (const name of ['prompt', 'suffix', 'best_of', 'echo', 'logprobs', 'n']) delete chat[name]
  if (best_of > 1) chat.n = best_of
  // Candidates are compared by their log probabilities.
  if (logprobs !== undefined || best_of > n) chat.logprobs = true
  if (logprobs) chat.top_logprobs = logprobs
  const prompts = typeof prompt === 'string' ? [prompt] : prompt
  return {
    /** The prompts as the client sent them. */
    prompts,
    /** The chat request of each prompt. */
    requests: prompts.map((text) => parseChatRequest({ ...chat, messages: messagesOf(text, suffix) })),
    /** How many completions of each prompt the client receives. */
    n,
    echo,
    logprobs: logprobs !== undefined,
  }
}

/**
 * The prompt is the whole conversation, without an instruction of the gateway: models that follow instructions were
 * used through this API too.
 */
function messagesOf(prompt: string, suffix: string): object[] {
  if (suffix === '') return [{ role: 'user', content: prompt }]
  return [
    { role: 'system', content: BETWEEN },
    { role: 'user', content: `<before>${prompt}</before>\n<after>${suffix}</after>` },
  ]
}

const BETWEEN =
  'You complete documents. The user gives the text before and the text after a gap. Write exactly the text that belongs ' +
  'into the gap, with its white space, and nothing else: no tags, no code fence, no explanation, no repetition of the ' +
  'text before or after it.'

type Consistent = { n: number; best_of: number; echo: boolean; logprobs: number | undefined; stream: unknown }

function assertConsistent({ n, best_of, echo, logprobs, stream }: Consistent): void {
  if (best_of < n) {
    throw invalidValue('best_of', `"best_of" must be at least "n", which is ${n}, not ${best_of}.`)
  }
  if (best_of > n && stream === true) {
    const message = '"best_of" must not be above "n" in a stream: the candidates are compared when they are complete.'
    throw invalidValue('best_of', message)
  }
  if (!echo || logprobs === undefined) return
  const rule = 'is not supported with "echo": chat models return no log probabilities of the prompt. Leave one out'
  throw refusedField('logprobs', rule)
}

/** Fields of chat completions that a text completion cannot fulfil. */
const REFUSED: Record<string, string> = {
  messages: 'the text is "prompt"; conversations are for /v1/chat/completions',
  tools: 'ask at /v1/chat/completions',
  tool_choice: 'ask at /v1/chat/completions',
  functions: 'ask at /v1/chat/completions',
  function_call: 'ask at /v1/chat/completions',
  modalities: 'a completion is text; ask at /v1/chat/completions',
  audio: 'a completion is text; ask at /v1/chat/completions',
  top_logprobs: 'it is the number in "logprobs"',
}

function assertSupported(given: JsonRecord): void {
  for (const [field, instead] of Object.entries(REFUSED)) {
    if (given[field] !== undefined) throw refusedField(field, `is not supported here: ${instead}`)
  }
  const { prompt } = given
  const [first] = Array.isArray(prompt) ? prompt : []
  const token = Array.isArray(first) ? first[0] : first
  if (typeof token !== 'number') return
  // A number means another text in the vocabulary of each model, and the model may be of any vendor.
  const message = '"prompt" must be text: a string or an array of strings. Tokens depend on the model; send their text.'
  throw new GatewayError('unsupported_value', message, { param: 'prompt' })
}

const translate = errorTranslator({
  fields: { top_logprobs: 'logprobs' },
  parts: [],
  inMessage: () => 'prompt',
})

/** The same error with the fields of this API. `at`: the index of the prompt in a list of several. */
export function errorForClient(error: GatewayError, request: ChatRequest, at?: number): GatewayError {
  const translated = translate(error, request)
  if (at === undefined || translated.detail.param !== 'prompt') return translated
  return withParam(translated, 'prompt', `prompt[${at}]`)
}
