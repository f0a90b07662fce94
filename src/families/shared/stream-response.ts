/** Responds with a stream of events, and ends the request for the access log when the stream has ended. */
import type { SentStream } from '../../calls/pipeline.ts'
import type { ServerSettings } from '../../config/config.ts'
import type { Context } from '../../http/context.ts'
import { awaitStart, eventStream, type Framing } from '../../http/event-stream.ts'
import type { Clock } from '../../kit/clock.ts'
import { COMMENT_CHARACTERS, explanationText } from './explanation.ts'

type StreamOptions = {
  headers?: Record<string, string>
  /** Default: server-sent events. */
  framing?: Framing | undefined
  settings: Pick<ServerSettings, 'keep_alive_seconds'>
  clock: Clock
}

/** The response to a streamed call. Rejects with the provider's error while a status can still report it. */
export async function callStream(
  { started, parts, record, abandon }: SentStream,
  context: Context,
  options: StreamOptions,
): Promise<Response> {
  await awaitStart(started, silenceOf(context, options))
  // A comment is possible only among server-sent events, which have no media type of their own here.
  const isCommented = context.is_explained && options.framing?.content_type === undefined
  return respond(isCommented ? withExplanation(parts, record) : parts, context, {
    ...options,
    async onEnd(outcome) {
      await abandon() // where the client has left; otherwise the call is settled or about to be
      if (record.error) context.note.error = record.error
      context.finish(record.error ? 'cut' : outcome)
    },
  })
}

/** The response to a request for events that are stored. */
export const storedStream = (events: AsyncIterable<string>, context: Context, options: StreamOptions): Response =>
  respond(events, context, { ...options, onEnd: (outcome) => context.finish(outcome) })

/** The explanation of the whole call, failures within the stream included, follows its last event. */
async function* withExplanation(
  parts: SentStream['parts'],
  record: SentStream['record'],
): AsyncGenerator<string | Uint8Array> {
  yield* parts
  const text = explanationText(record, COMMENT_CHARACTERS)
  if (text !== undefined) yield `: x-gatehouse-explain ${text}\n\n`
}

const silenceOf = ({ arrived }: Context, { settings, clock }: StreamOptions) => ({
  arrived,
  keep_alive_ms: settings.keep_alive_seconds * 1000,
  clock,
})

type Ending = Pick<Parameters<typeof eventStream>[0], 'onEnd'>

function respond(
  batches: AsyncIterable<string | Uint8Array>,
  context: Context,
  options: StreamOptions & Ending,
): Response {
  const { headers, framing, clock, onEnd } = options
  context.note.stream = true
  return eventStream({
    ...silenceOf(context, options),
    batches,
    ...(headers ? { headers } : {}),
    ...(framing ? { framing } : {}),
    abort: () => context.leave(),
    onFirstByte() {
      context.note.first_byte_ms = clock.steady() - context.arrived
    },
    onEnd,
  })
}
