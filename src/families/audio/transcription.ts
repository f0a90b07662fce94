/** The transcription family: audio is sent to one target, whose text comes back as a whole or as it is recognized. */
import type { Call, Meter } from '../../calls/call.ts'
import type { Family, StreamFamily } from '../../calls/family.ts'
import { AnswerBlocked } from '../../calls/guarded-call.ts'
import type { CallGuards } from '../../calls/guards/call-guards.ts'
import { textAt } from '../../calls/guards/content.ts'
import type { CatalogueModel } from '../../models/catalogue.ts'
import { isPricedByTokens } from '../../models/prices.ts'
import type { Recording, TranscriptionCall, TranscriptionProvider, TranscriptPart } from '../../providers/audio.ts'
import type { Target } from '../../providers/provider.ts'
import type { Transcript, TranscriptionRequest, TranscriptUsage } from '../../spec/audio-request.ts'
import { errorBody, GatewayError } from '../../spec/error.ts'
import type { Estimate, Units } from '../../spec/usage.ts'
import { awaitFirst } from '../shared/await-first.ts'
import { partOf } from '../shared/provider-part.ts'
import { secondsOf } from './duration.ts'
import { event } from './speech.ts'

export type TranscriptionInput = Pick<TranscriptionCall, 'task' | 'recording'> & { request: TranscriptionRequest }

type TranscriptionWork = Pick<TranscriptionCall, 'task' | 'recording' | 'request'> & {
  targets: Target[]
  isPricedByTokens: boolean
  guards?: CallGuards | undefined
}

type TranscriptMeter = Meter<TranscriptUsage> & {
  reported(transcript: Transcript): void
  delivered(): void
}

export type Transcription = {
  whole: Family<TranscriptionInput, TranscriptionWork, Transcript, TranscriptMeter>
  stream: StreamFamily<TranscriptionInput, TranscriptionWork, TranscriptMeter>
}

export function createTranscription(): Transcription {
  const shared = {
    endpoint: () => 'audio-transcription' as const,
    modelOf: ({ request }: TranscriptionInput) => request.model,
    fit(model: CatalogueModel, { task, recording, request: given }: TranscriptionInput): TranscriptionWork {
      const { model: _, stream: __, user: ___, response_format = 'json', ...rest } = given
      return {
        task,
        recording,
        request: { ...rest, response_format },
        targets: model.targets,
        isPricedByTokens: isPricedByTokens(model, 'audio_second'),
      }
    },
    meter: createTranscriptMeter,
    estimate: ({ recording, request }: TranscriptionWork) => estimateTranscript(recording, request.prompt),
    guarded: {
      input(work: TranscriptionWork, { guards }: Call) {
        const request = { ...work.request }
        work.request = request
        work.guards = guards
        return textAt(request, 'prompt')
      },
    },
    texts: ({ request: { prompt } }: TranscriptionWork) => (prompt === undefined ? [] : [prompt]),
    policy: 'until_answered' as const,
    targets: ({ targets }: TranscriptionWork) => targets,
    // Two attempts at the same time would write their forms into the same memory.
    is_hedged: false as const,
  }
  return {
    whole: {
      ...shared,
      async send(target, work, { call, signal, meter }) {
        const transcript = await providerOf(target).transcribe(callOf(target, work, call), signal)
        meter.reported(transcript)
        return work.guards?.readsAnswer ? await guardedTranscript(work.guards, transcript) : transcript
      },
    },
    stream: {
      ...shared,
      async send(target, work, { call, signal, meter }) {
        const provider = providerOf(target)
        const asked = callOf(target, work, call)
        const guards = work.guards?.readsAnswer ? work.guards : undefined
        // Events of several forms have the text: what is guarded comes as a whole.
        const events = (guards ? undefined : provider.stream?.(asked, signal)) ?? whole(provider, asked, signal)
        const parts = await awaitFirst(encode(events, { meter, guards, provider_id: target.provider.id }))
        return { parts, includesUsage: false, end: () => '' }
      },
      encodeError: (error) => event({ type: 'error', ...errorBody(error) }),
    },
  }
}

const providerOf = (target: Target): TranscriptionProvider => partOf(target, 'transcription', 'serves no transcription')

const callOf = ({ model }: Target, { task, recording, request }: TranscriptionWork, { request_id }: Call) => ({
  model,
  task,
  recording,
  request,
  request_id,
})

async function* whole(
  provider: TranscriptionProvider,
  call: TranscriptionCall,
  signal: AbortSignal,
): AsyncGenerator<TranscriptPart> {
  yield { type: 'end', transcript: await provider.transcribe(call, signal) }
}

/** A transcript that a guard blocks is an error: this API has no other form for it. */
async function guardedTranscript(guards: CallGuards, { logprobs: _, ...given }: Transcript): Promise<Transcript> {
  const transcript = { ...given }
  if (!(await guards.checkOutput(textAt(transcript, 'text')))) throw new AnswerBlocked()
  const { text, words: __, segments, ...rest } = transcript
  if (text === given.text) return transcript
  // What was replaced may be spread over words and segments: one segment has all of the text.
  const [first, last] = [segments?.[0], segments?.at(-1)]
  return { ...rest, text, ...(first && last && { segments: [{ start: first.start, end: last.end, text }] }) }
}

type Encoding = { meter: TranscriptMeter; guards: CallGuards | undefined; provider_id: string }

/** A text that came as a whole is one delta, so that a client that only reads deltas has it too. */
async function* encode(
  parts: AsyncIterable<TranscriptPart>,
  { meter, guards, provider_id }: Encoding,
): AsyncGenerator<string> {
  let hasText = false
  for await (const part of parts) {
    if (part.type === 'event') {
      hasText = true
      meter.delivered()
      yield event(part.event as { type: string })
      continue
    }
    meter.reported(part.transcript)
    const transcript = guards ? await guardedTranscript(guards, part.transcript) : part.transcript
    const { text, logprobs, languages } = transcript as Transcript & { languages?: unknown }
    const usage = await meter.usage()
    if (!hasText && text !== '') yield event({ type: 'transcript.text.delta', ...{ delta: text } })
    yield event({
      type: 'transcript.text.done',
      ...{ text, ...(logprobs ? { logprobs } : {}), ...(languages ? { languages } : {}), usage },
    })
    return
  }
  throw new GatewayError('upstream_cut', `The upstream "${provider_id}" ended before the transcription was complete.`)
}

/** OpenAI counts ten tokens for a second of audio; fast speech has five tokens of text in it. */
const TOKENS_A_SECOND = 10
const TEXT_TOKENS_A_SECOND = 5

function estimateTranscript(recording: Recording, prompt = ''): Estimate {
  const { held, most } = secondsOf(recording)
  const prompted = Buffer.byteLength(prompt)
  const units = (seconds: number, input: number): Units => ({
    input_tokens: Math.ceil(seconds * TOKENS_A_SECOND) + input,
    output_tokens: Math.ceil(seconds * TEXT_TOKENS_A_SECOND),
    input_audio_tokens: Math.ceil(seconds * TOKENS_A_SECOND),
    audio_seconds: seconds,
    requests: 1,
  })
  return { expected: units(held, Math.ceil(prompted / 4)), most: units(most, prompted) }
}

function createTranscriptMeter({ recording, request, isPricedByTokens }: TranscriptionWork): TranscriptMeter {
  let transcript: Transcript | undefined
  let hasDelivered = false

  /** What the provider has counted; else no less than what the file, or where that is unknown the last segment, tells. */
  function seconds(): { seconds: number; estimated?: true } {
    const { usage, duration, segments = [] } = transcript ?? {}
    const { seconds: counted = 0, estimated: isLeast } = usage?.type === 'duration' ? usage : {}
    if (counted > 0 && !isLeast) return { seconds: counted }
    const named = isLeast ? 0 : (duration ?? 0)
    const { expected, is_exact } = secondsOf(recording)
    if (is_exact) return { seconds: Math.max(expected, named) }
    if (named > 0) return { seconds: named }
    return { seconds: Math.max(expected, counted, segments.at(-1)?.end ?? 0), estimated: true }
  }

  /** Of a provider that reports none, or has not yet when its client leaves; only where tokens are what is charged. */
  function estimatedTokens(audio_seconds: number) {
    const input_audio_tokens = Math.ceil(audio_seconds * TOKENS_A_SECOND)
    return {
      input_tokens: input_audio_tokens + Math.ceil(Buffer.byteLength(request.prompt ?? '') / 4),
      output_tokens: Math.ceil(transcript ? transcript.text.length / 4 : audio_seconds * TEXT_TOKENS_A_SECOND),
      input_audio_tokens,
      estimated: true as const,
    }
  }

  return {
    reported(given) {
      transcript = given
    },
    delivered() {
      hasDelivered = true
    },
    usage: () => (transcript?.usage?.type === 'tokens' ? transcript.usage : { type: 'duration', ...seconds() }),
    hasCounted: () => transcript !== undefined || hasDelivered,
    units(usage) {
      const { seconds: audio_seconds, estimated } = seconds()
      const tokens = usage.type === 'tokens' ? usage : undefined
      if (!tokens && isPricedByTokens) return { ...estimatedTokens(audio_seconds), audio_seconds, requests: 1 }
      return {
        input_tokens: tokens?.input_tokens ?? 0,
        output_tokens: tokens?.output_tokens ?? 0,
        input_audio_tokens: tokens?.input_token_details?.audio_tokens,
        audio_seconds,
        requests: 1,
        estimated: tokens ? undefined : estimated,
      }
    },
  }
}
