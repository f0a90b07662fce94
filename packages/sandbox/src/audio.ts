/** The sandbox as a provider of speech and transcription: its voice is a sequence of tones, and it understands only that voice. */
import { sentencesOf } from '../../../src/kit/sentences.ts'
import type { SpeechProvider, TranscriptionCall, TranscriptionProvider } from '../../../src/providers/audio.ts'
import type { Transcript, TranscriptWord } from '../../../src/spec/audio-request.ts'
import { GatewayError } from '../../../src/spec/error.ts'
import { applyDirectives, type SimulationParts } from './text-directives.ts'
import { countTokens } from './tokens.ts'
import { audioOf, secondsOfText, startOfByte, type ToneFormat, textOf } from './tone-code.ts'

/** After so many bytes the event loop serves other requests. */
const BYTES_PER_TURN = 4 * 1024 * 1024
/** OpenAI's count. */
const AUDIO_TOKENS_A_SECOND = 20

export function createSandboxSpeech(parts: SimulationParts): SpeechProvider {
  return {
    async *speak({ model, request }, signal) {
      const simulated = { texts: [request.input], param: 'input', model, signal }
      const { rest, hasUsage } = await applyDirectives(simulated, parts)
      const text = rest[0] ?? ''
      for (const part of audioOf(text, request.response_format as ToneFormat)) {
        signal.throwIfAborted()
        yield part
        await new Promise((resolve) => setImmediate(resolve))
      }
      if (!hasUsage) return
      yield { input_tokens: countTokens(text), output_tokens: Math.ceil(secondsOfText(text) * AUDIO_TOKENS_A_SECOND) }
    },
  }
}

export function createSandboxTranscription(parts: SimulationParts): TranscriptionProvider {
  async function read(call: TranscriptionCall, signal: AbortSignal): Promise<Transcript> {
    const { model, request, recording, task } = call
    const simulated = { texts: [request.prompt ?? ''], param: 'prompt', model, signal }
    const { hasUsage } = await applyDirectives(simulated, parts)
    if (recording.bytes.length > BYTES_PER_TURN * 8) {
      const message = `The file has ${recording.bytes.length} bytes; the sandbox accepts at most ${BYTES_PER_TURN * 8}.`
      throw new GatewayError('context_length_exceeded', message, { param: 'file' })
    }
    const text = textOf(recording.bytes)
    const understood = text ?? NOT_UNDERSTOOD
    const duration = text === undefined ? undefined : secondsOfText(text)
    const words = text === undefined ? [] : wordsIn(text)
    const { response_format: format, timestamp_granularities: times = ['segment'] } = request
    const hasTimes = format === 'verbose_json' || format === 'srt' || format === 'vtt' || format === 'diarized_json'
    const speaker = format === 'diarized_json' ? { speaker: 'A', type: 'transcript.text.segment' } : {}
    return {
      ...(hasTimes ? { task, language: 'english' } : {}),
      ...(hasTimes && duration !== undefined ? { duration } : {}),
      text: understood,
      ...(hasTimes && (times.includes('segment') || speaker.speaker)
        ? { segments: sentencesOf(words).map((one, id) => ({ id, ...one, ...speaker })) }
        : {}),
      ...(format === 'verbose_json' && times.includes('word') ? { words } : {}),
      ...(hasUsage && duration !== undefined ? { usage: { type: 'duration', seconds: duration } } : {}),
    }
  }

  return {
    transcribe: read,
    async *stream(call, signal) {
      const transcript = await read(call, signal)
      for (const delta of transcript.text.match(/\s*\S+|\s+$/g) ?? []) {
        signal.throwIfAborted()
        yield { type: 'event', event: { type: 'transcript.text.delta', delta } }
      }
      yield { type: 'end', transcript }
    },
  }
}

const NOT_UNDERSTOOD = '(The sandbox understands only audio that its own model for speech has made.)'

/** With the times at which they are spoken. */
function wordsIn(text: string): TranscriptWord[] {
  const words: TranscriptWord[] = []
  let bytes = 0
  for (const piece of text.split(/(\s+)/)) {
    const length = Buffer.byteLength(piece)
    if (piece.trim() !== '') words.push({ word: piece, start: startOfByte(bytes), end: startOfByte(bytes + length) })
    bytes += length
  }
  return words
}
