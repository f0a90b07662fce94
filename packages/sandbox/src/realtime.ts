/** Simulates a provider of realtime sessions, with a small part of the Realtime API: text in, text or audio out, usage, errors. */
import type { Clock } from '../../../src/kit/clock.ts'
import { isRecord, type JsonRecord, parseJson } from '../../../src/kit/json.ts'
import type { RealtimeListener, RealtimeProvider } from '../../../src/providers/realtime.ts'

const CHARACTERS_A_TOKEN = 4
const BYTES_A_SECOND = 48_000
const TONE_HERTZ = 440
const DELTA_CHARACTERS = 24

/** A session's own state: its settings, and the texts of both sides. */
type Session = { model: string; settings: JsonRecord; texts: string[]; responses: number; isClosed: boolean }

export function createSandboxRealtime({ clock }: { clock: Clock }): RealtimeProvider {
  return {
    api: 'openai',
    async connect({ model }, listener) {
      const session: Session = { model, settings: {}, texts: [], responses: 0, isClosed: false }
      const emit = emitterTo(listener, session)
      clock.after(0, () => emit({ type: 'session.created', session: sessionOf(session) }))
      return {
        send: (text) => void clock.after(0, () => receive(session, text, emit)),
        buffered: () => 0,
        close() {
          session.isClosed = true
        },
      }
    },
  }
}

type Emit = (event: JsonRecord) => void

function emitterTo(listener: RealtimeListener, session: Session): Emit {
  let count = 0
  return (event) => {
    count++
    if (!session.isClosed) listener.message(JSON.stringify({ event_id: `event_sandbox_${count}`, ...event }))
  }
}

const sessionOf = ({ model, settings }: Session) => ({
  type: 'realtime',
  object: 'realtime.session',
  ...settings,
  model,
})

function receive(session: Session, text: string, emit: Emit): void {
  const event = parseJson(text)
  if (!isRecord(event)) return
  switch (event.type) {
    case 'session.update':
      if (isRecord(event.session)) session.settings = { ...session.settings, ...event.session }
      emit({ type: 'session.updated', session: sessionOf(session) })
      break
    case 'conversation.item.create': {
      const input = textIn(event.item)
      if (input !== '') session.texts.push(input)
      emit({ type: 'conversation.item.added', item: event.item })
      break
    }
    case 'response.create':
      respond(session, isRecord(event.response) ? event.response : {}, emit)
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
  session.responses++
  const response_id = `resp_sandbox_${session.responses}`
  const last = session.texts.at(-1) ?? ''
  const answer = `You said: ${last === '' ? 'nothing' : last}`
  const modalities = output_modalities ?? session.settings.output_modalities ?? ['audio']
  const isAudio = Array.isArray(modalities) && modalities.includes('audio')
  const base = { response_id, item_id: `item_sandbox_${session.responses}`, output_index: 0, content_index: 0 }
  const response = { id: response_id, object: 'realtime.response', status: 'in_progress', output: [] }
  emit({ type: 'response.created', response })
  for (let at = 0; at < answer.length; at += DELTA_CHARACTERS) {
    const delta = answer.slice(at, at + DELTA_CHARACTERS)
    if (!isAudio) emit({ type: 'response.output_text.delta', ...base, delta })
    else {
      emit({ type: 'response.output_audio_transcript.delta', ...base, delta })
      emit({ type: 'response.output_audio.delta', ...base, delta: tone(delta.length / 100).toString('base64') })
    }
  }
  const input = Math.ceil(session.texts.join(' ').length / CHARACTERS_A_TOKEN)
  const output = Math.ceil(answer.length / CHARACTERS_A_TOKEN)
  session.texts.push(answer)
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

function textIn(item: unknown): string {
  const content = isRecord(item) && Array.isArray(item.content) ? item.content : []
  return content.map((part) => (isRecord(part) && typeof part.text === 'string' ? part.text : '')).join(' ')
}

/** PCM with 24,000 samples of 16 bits a second. */
function tone(seconds: number): Buffer {
  const samples = Math.round((seconds * BYTES_A_SECOND) / 2)
  const bytes = Buffer.alloc(samples * 2)
  for (let at = 0; at < samples; at++) {
    bytes.writeInt16LE(Math.round(8_000 * Math.sin((2 * Math.PI * TONE_HERTZ * at * 2) / BYTES_A_SECOND)), at * 2)
  }
  return bytes
}
