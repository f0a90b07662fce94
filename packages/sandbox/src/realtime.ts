/**
 * Simulates a provider of realtime sessions, with small parts of the Realtime API and of the Live API: text in, text or audio out,
 * usage, errors.
 */
import type { Clock } from '../../../src/kit/clock.ts'
import { asRecord, isRecord, type JsonRecord, memberOf, parseJson } from '../../../src/kit/json.ts'
import type { RealtimeProvider } from '../../../src/providers/realtime.ts'
import { MAX_AUDIO_CHARACTERS } from './chat-audio.ts'

const CHARACTERS_A_TOKEN = 4
const BYTES_A_SECOND = 48_000
const TONE_HERTZ = 440
const DELTA_CHARACTERS = 24

/** A session's own state: its settings, and the texts of both sides. */
type Session = { model: string; settings: JsonRecord; texts: string[]; responses: number; isClosed: boolean }

type Emit = (event: JsonRecord) => void

export function createSandboxRealtime({ clock }: { clock: Clock }): RealtimeProvider {
  return {
    apis: ['openai', 'gemini'],
    async connect({ model, api }, listener) {
      const session: Session = { model, settings: {}, texts: [], responses: 0, isClosed: false }
      let count = 0
      const emit: Emit = (event) => {
        count++
        const id = api === 'openai' ? { event_id: `event_sandbox_${count}` } : {}
        if (!session.isClosed) listener.message(JSON.stringify({ ...id, ...event }))
      }
      const receive = api === 'openai' ? receiveRealtime : receiveLive
      if (api === 'openai') clock.after(0, () => emit({ type: 'session.created', session: sessionOf(session) }))
      return {
        send(text) {
          const event = parseJson(text)
          if (isRecord(event)) clock.after(0, () => receive(session, event, emit))
        },
        buffered: () => 0,
        close() {
          session.isClosed = true
        },
      }
    },
  }
}

const sessionOf = ({ model, settings }: Session) => ({
  type: 'realtime',
  object: 'realtime.session',
  ...settings,
  model,
})

function receiveRealtime(session: Session, event: JsonRecord, emit: Emit): void {
  switch (event.type) {
    case 'session.update':
      if (isRecord(event.session)) session.settings = { ...session.settings, ...event.session }
      emit({ type: 'session.updated', session: sessionOf(session) })
      break
    case 'conversation.item.create':
      session.texts.push(...textsIn(memberOf(event.item, 'content')))
      emit({ type: 'conversation.item.added', item: event.item })
      break
    case 'response.create':
      respond(session, asRecord(event.response), emit)
      break
    case 'response.cancel':
    case 'input_audio_buffer.append':
      break
    default:
      emit({
        type: 'error',
        error: {
          type: 'invalid_request_error',
          code: 'unknown_event',
          message: `The sandbox does not know the event "${String(event.type).slice(0, 100)}".`,
          param: 'type',
          event_id: event.event_id ?? null,
        },
      })
  }
}

function respond(session: Session, { output_modalities }: JsonRecord, emit: Emit): void {
  const modalities = output_modalities ?? session.settings.output_modalities ?? ['audio']
  const isAudio = Array.isArray(modalities) && modalities.includes('audio')
  const { deltas, input, output } = answerOf(session)
  const response_id = `resp_sandbox_${session.responses}`
  const base = { response_id, item_id: `item_sandbox_${session.responses}`, output_index: 0, content_index: 0 }
  const response = { id: response_id, object: 'realtime.response', status: 'in_progress', output: [] }
  emit({ type: 'response.created', response })
  for (const delta of deltas) {
    if (!isAudio) emit({ type: 'response.output_text.delta', ...base, delta })
    else {
      emit({ type: 'response.output_audio_transcript.delta', ...base, delta })
      emit({ type: 'response.output_audio.delta', ...base, delta: tone(delta.length / 100) })
    }
  }
  emit({
    type: 'response.done',
    response: { ...response, status: 'completed', usage: usageOf(input, output, isAudio) },
  })
}

/** The audio of a text has as many tokens as its transcript. */
const usageOf = (input_tokens: number, output: number, isAudio: boolean) => ({
  total_tokens: input_tokens + (isAudio ? 2 * output : output),
  input_tokens,
  output_tokens: isAudio ? 2 * output : output,
  input_token_details: { cached_tokens: 0, text_tokens: input_tokens, audio_tokens: 0 },
  output_token_details: { text_tokens: output, audio_tokens: isAudio ? output : 0 },
})

/** Of the Live API: the setup, turns of text, and text of the realtime input, which is a turn of its own. */
function receiveLive(session: Session, event: JsonRecord, emit: Emit): void {
  const { setup, clientContent = event.client_content, realtimeInput = event.realtime_input } = event
  if (isRecord(setup)) {
    session.settings = setup
    emit({ setupComplete: {} })
  } else if (isRecord(clientContent)) {
    const turns = Array.isArray(clientContent.turns) ? clientContent.turns : []
    for (const turn of turns) session.texts.push(...textsIn(memberOf(turn, 'parts')))
    if ((clientContent.turnComplete ?? clientContent.turn_complete) === true) respondLive(session, emit)
  } else {
    const text = memberOf(realtimeInput, 'text')
    if (typeof text !== 'string') return
    session.texts.push(text)
    respondLive(session, emit)
  }
}

function respondLive(session: Session, emit: Emit): void {
  const modalities = memberOf(session.settings.generationConfig, 'responseModalities')
  const isAudio = !Array.isArray(modalities) || modalities.includes('AUDIO')
  const { deltas, input, output } = answerOf(session)
  for (const text of deltas) {
    const part = isAudio
      ? { inlineData: { mimeType: 'audio/pcm;rate=24000', data: tone(text.length / 100) } }
      : { text }
    emit({ serverContent: { modelTurn: { parts: [part] } } })
  }
  emit({ serverContent: { generationComplete: true } })
  emit({
    serverContent: { turnComplete: true },
    usageMetadata: {
      promptTokenCount: input,
      responseTokenCount: output,
      totalTokenCount: input + output,
      promptTokensDetails: [{ modality: 'TEXT', tokenCount: input }],
      responseTokensDetails: [{ modality: isAudio ? 'AUDIO' : 'TEXT', tokenCount: output }],
    },
  })
}

/** The next answer of a session in parts, and its tokens. */
function answerOf(session: Session): { deltas: string[]; input: number; output: number } {
  session.responses++
  const answer = `You said: ${session.texts.at(-1) ?? 'nothing'}`.slice(0, MAX_AUDIO_CHARACTERS)
  const input = Math.ceil(session.texts.join(' ').length / CHARACTERS_A_TOKEN)
  session.texts.push(answer)
  const deltas: string[] = []
  for (let at = 0; at < answer.length; at += DELTA_CHARACTERS) deltas.push(answer.slice(at, at + DELTA_CHARACTERS))
  return { deltas, input, output: Math.ceil(answer.length / CHARACTERS_A_TOKEN) }
}

/** The texts of the parts of a message, as one; none where there is no text. */
function textsIn(parts: unknown): string[] {
  const texts = Array.isArray(parts) ? parts.map((part) => memberOf(part, 'text')) : []
  const text = texts.filter((one) => typeof one === 'string').join(' ')
  return text === '' ? [] : [text]
}

/** PCM with 24,000 samples of 16 bits a second, as base64. */
function tone(seconds: number): string {
  const samples = Math.round((seconds * BYTES_A_SECOND) / 2)
  const bytes = Buffer.alloc(samples * 2)
  for (let at = 0; at < samples; at++) {
    bytes.writeInt16LE(Math.round(8_000 * Math.sin((2 * Math.PI * TONE_HERTZ * at * 2) / BYTES_A_SECOND)), at * 2)
  }
  return bytes.toString('base64')
}
