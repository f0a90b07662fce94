/** Reads the events of realtime APIs, as far as a session has to know them: what begins a response, what it delivers, what it used. */
import { asRecord, isRecord, type JsonRecord } from '../../kit/json.ts'
import type { RealtimeApi } from '../../providers/realtime.ts'
import { GatewayError, invalidValue } from '../../spec/error.ts'
import type { Units } from '../../spec/usage.ts'
import type { Delivered, InputTranscription } from './realtime.ts'

/** What a session is about, as its events name it. */
type SessionNames = {
  /** As the client names the model. */
  model: string
  /** The provider's own name of it. */
  upstream_model: string
  /** The caller is limited to some models or families. */
  is_limited: boolean
}

/** `begins`: it asks for a response. `max_output_tokens`: of that one, else of the responses from now on. */
type ClientEvent = { text: string; begins: boolean; event_id?: string; max_output_tokens?: number | undefined }

/**
 * `id`: of the response that it concerns. `ends`: with what the provider has counted for it. `refuses`: the id of the client's
 * event that the provider has refused.
 */
type ProviderEvent = InputTranscription & {
  refuses?: string
  text: string
  id?: string
  begins?: true
  delivers?: Delivered
  ends?: { units: Units | undefined }
}

export type RealtimeEvents = {
  /** What is sent instead of an event of the client. Throws GatewayError. */
  ofClient(event: JsonRecord, text: string, names: SessionNames): ClientEvent
  ofProvider(event: JsonRecord, text: string, names: SessionNames): ProviderEvent
  /** Stops a response; undefined: the API cannot. */
  cancel(id: string): string | undefined
  /** An error as an event; undefined: the API has none, and the reason of the close tells it. */
  error(error: GatewayError, event_id?: unknown): string | undefined
}

export const eventsOf = (api: RealtimeApi): RealtimeEvents => (api === 'openai' ? OPENAI : createGeminiEvents())

const countOf = (value: unknown): number => (Number.isSafeInteger(value) ? Math.max(0, value as number) : 0)
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
/** Of base64, in bytes. */
const bytesOf = (base64: unknown): number => (textOf(base64).length * 3) / 4

/** PCM with 24,000 samples of two bytes a second; 20 tokens a second of generated audio. */
const OPENAI_BYTES_A_TOKEN = 2_400

const OPENAI: RealtimeEvents = {
  ofClient(event, text, names) {
    if (event.type === 'session.update') return withSession(event, text, names)
    if (event.type !== 'response.create') return { text, begins: false }
    const response = asRecord(event.response)
    refuseOthers(response, names)
    const max_output_tokens = outputLimit(response)
    if (typeof event.event_id === 'string') return { text, begins: true, event_id: event.event_id, max_output_tokens }
    const event_id = newEventId() // an error of the provider names it
    return { text: JSON.stringify({ ...event, event_id }), begins: true, event_id, max_output_tokens }
  },

  ofProvider(event, text, { model }) {
    const { type, response_id } = event
    const response = asRecord(event.response)
    switch (type) {
      case 'session.created':
      case 'session.updated': {
        const session = asRecord(event.session)
        const { transcription = session.input_audio_transcription } = asRecord(asRecord(session.audio).input)
        const transcriber = textOf(asRecord(transcription).model)
        return { text: session.model === undefined ? text : withModel(event, session, model), transcriber }
      }
      case 'conversation.item.input_audio_transcription.completed':
        return { text, transcribed: transcribedIn(event) }
      case 'error':
        return { text, refuses: textOf(asRecord(event.error).event_id) }
      case 'response.created':
        return { text, id: textOf(response.id), begins: true }
      case 'response.done':
        return { text, id: textOf(response.id), ends: { units: openaiUnits(response.usage) } }
      case 'response.output_audio.delta':
      case 'response.audio.delta':
        return {
          text,
          id: textOf(response_id),
          delivers: { audio_tokens: bytesOf(event.delta) / OPENAI_BYTES_A_TOKEN },
        }
      case 'response.output_text.delta':
      case 'response.text.delta':
      case 'response.output_audio_transcript.delta':
      case 'response.audio_transcript.delta':
      case 'response.function_call_arguments.delta':
        return { text, id: textOf(response_id), delivers: { characters: textOf(event.delta).length } }
      default:
        return { text }
    }
  },

  cancel: (response_id) => JSON.stringify({ type: 'response.cancel', response_id }),

  error: ({ message, type, code, detail }, event_id) =>
    JSON.stringify({
      type: 'error',
      event_id: newEventId(),
      error: {
        type,
        code,
        message,
        param: detail.param ?? null,
        event_id: typeof event_id === 'string' ? event_id : null,
      },
    }),
}

const newEventId = () => `event_${crypto.randomUUID().replaceAll('-', '')}`

/** Of a response of the Realtime API, and what `inf` is. */
export const MAX_OUTPUT_TOKENS = 4_096

function outputLimit({ max_output_tokens, max_response_output_tokens }: JsonRecord): number | undefined {
  const limit = max_output_tokens ?? max_response_output_tokens
  if (limit === 'inf') return MAX_OUTPUT_TOKENS
  return typeof limit === 'number' && limit > 0 ? limit : undefined
}

/** A session keeps its model: an event that names it gets the provider's name of it, one that names another is refused. */
function withSession(event: JsonRecord, text: string, names: SessionNames): ClientEvent {
  const session = asRecord(event.session)
  refuseOthers(session, names)
  const { type } = session
  if (type !== undefined && type !== null && type !== 'realtime') {
    throw new GatewayError('unsupported_value', 'Sessions of another type than "realtime" are not supported.', {
      param: 'session.type',
    })
  }
  const max_output_tokens = outputLimit(session)
  if (session.model === undefined || session.model === null) return { text, begins: false, max_output_tokens }
  return { text: withModel(event, session, names.upstream_model), begins: false, max_output_tokens }
}

const withModel = (event: JsonRecord, session: JsonRecord, model: string): string =>
  JSON.stringify({ ...event, session: { ...session, model } })

/** Throws for what reaches another model, or, for a limited token, objects and tools of the operator's account. */
function refuseOthers(settings: JsonRecord, { model, upstream_model, is_limited }: SessionNames): void {
  const named = settings.model
  if (named !== undefined && named !== null && named !== model && named !== upstream_model) {
    throw invalidValue('session.model', 'The model of a session cannot be changed: open another session.')
  }
  if (!is_limited) return
  const { prompt, tools } = settings
  const input = asRecord(asRecord(settings.audio).input)
  if (prompt) throw notForLimited('prompt', 'a stored prompt')
  if (settings.input_audio_transcription || input.transcription) {
    throw notForLimited('audio.input.transcription', 'another model for transcriptions')
  }
  if (Array.isArray(tools) && tools.some((tool) => asRecord(tool).type !== 'function')) {
    throw notForLimited('tools', 'tools other than functions')
  }
}

const notForLimited = (param: string, what: string) =>
  new GatewayError('unsupported_parameter', `A token that is limited to some models or families may not use ${what}.`, {
    param: `session.${param}`,
  })

/** https://platform.openai.com/docs/api-reference/realtime-server-events/response/done */
function openaiUnits(given: unknown): Units | undefined {
  if (!isRecord(given)) return undefined
  const input = asRecord(given.input_token_details)
  const output = asRecord(given.output_token_details)
  const cached = asRecord(input.cached_tokens_details)
  return {
    input_tokens: countOf(given.input_tokens),
    output_tokens: countOf(given.output_tokens),
    cached_tokens: countOf(input.cached_tokens),
    input_audio_tokens: Math.max(0, countOf(input.audio_tokens) - countOf(cached.audio_tokens)),
    output_audio_tokens: countOf(output.audio_tokens),
    requests: 1,
  }
}

/** https://platform.openai.com/docs/api-reference/realtime-server-events/conversation/item/input_audio_transcription/completed */
function transcribedIn({ item_id, content_index, usage }: JsonRecord): InputTranscription['transcribed'] {
  if (!isRecord(usage)) return undefined
  const { seconds } = usage
  const units: Units = {
    input_tokens: countOf(usage.input_tokens),
    output_tokens: countOf(usage.output_tokens),
    input_audio_tokens: countOf(asRecord(usage.input_token_details).audio_tokens),
    ...(typeof seconds === 'number' && { audio_seconds: Math.max(0, seconds) }),
    requests: 1,
  }
  return { id: `${item_id}/${content_index}`, units }
}

/** PCM with 24,000 samples of two bytes a second; 25 tokens a second. */
const GEMINI_BYTES_A_TOKEN = 1_920
const GEMINI_TURN = 'turn'

/** Google reads the names of its messages in either spelling, and its SDK for Python sends both. */
const FUNCTIONS: ReadonlySet<string> = new Set(['functionDeclarations', 'function_declarations'])

/** The Live API has one response at a time, and counts it in `usageMetadata`, beside its end or in an event of its own. */
function createGeminiEvents(): RealtimeEvents {
  let units: Units | undefined
  let isComplete = false

  return {
    ofClient(event, text, names) {
      const { setup, clientContent = event.client_content } = event
      if (isRecord(setup)) {
        refuseOthers({ tools: undefined }, names)
        const tools = Array.isArray(setup.tools) ? setup.tools.map(asRecord) : []
        if (names.is_limited && tools.some((tool) => Object.keys(tool).some((name) => !FUNCTIONS.has(name)))) {
          throw notForLimited('tools', 'tools other than functions')
        }
        const config = asRecord(setup.generationConfig ?? setup.generation_config)
        const limit = config.maxOutputTokens ?? config.max_output_tokens
        const changed = { ...event, setup: { ...setup, model: `models/${names.upstream_model}` } }
        return {
          text: JSON.stringify(changed),
          begins: false,
          max_output_tokens: typeof limit === 'number' && limit > 0 ? limit : undefined,
        }
      }
      const content = asRecord(clientContent)
      return { text, begins: (content.turnComplete ?? content.turn_complete) === true }
    },

    ofProvider(event, text) {
      const content = asRecord(event.serverContent)
      const parts = asRecord(content.modelTurn).parts
      const delivers = Array.isArray(parts) ? deliveredIn(parts.map(asRecord)) : undefined
      const begins = delivers !== undefined || isRecord(event.toolCall)
      if (begins && isComplete) isComplete = false
      if (isRecord(event.usageMetadata)) units = geminiUnits(event.usageMetadata)
      if (content.turnComplete === true) isComplete = true
      const out: ProviderEvent = { text, id: GEMINI_TURN }
      // A response may consist of its end alone.
      if (begins || (isComplete && units)) out.begins = true
      if (delivers) out.delivers = delivers
      if (isComplete && units) {
        out.ends = { units }
        units = undefined
        isComplete = false
      }
      return out
    },

    cancel: () => undefined,
    error: () => undefined,
  }
}

function deliveredIn(parts: readonly JsonRecord[]): Delivered {
  let [characters, audio_tokens] = [0, 0]
  for (const part of parts) {
    characters += textOf(part.text).length
    audio_tokens += bytesOf(asRecord(part.inlineData).data) / GEMINI_BYTES_A_TOKEN
  }
  return { characters, audio_tokens }
}

/** https://ai.google.dev/api/live#usagemetadata */
function geminiUnits(usage: JsonRecord): Units {
  const audioOf = (details: unknown) =>
    (Array.isArray(details) ? details.map(asRecord) : [])
      .filter(({ modality }) => modality === 'AUDIO')
      .reduce((sum, { tokenCount }) => sum + countOf(tokenCount), 0)
  const thoughts = countOf(usage.thoughtsTokenCount)
  return {
    input_tokens: countOf(usage.promptTokenCount) + countOf(usage.toolUsePromptTokenCount),
    output_tokens: countOf(usage.responseTokenCount) + thoughts,
    cached_tokens: countOf(usage.cachedContentTokenCount),
    input_audio_tokens: audioOf(usage.promptTokensDetails),
    output_audio_tokens: audioOf(usage.responseTokensDetails),
    reasoning_tokens: thoughts,
    requests: 1,
  }
}
