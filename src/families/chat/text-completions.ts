/** The family of text completions: a chat request for each prompt, and one response. */
import type { Call, Meter } from '../../calls/call.ts'
import type { ByTarget, Execution, Family, ResponseStream, StreamFamily } from '../../calls/family.ts'
import { sendAndRead } from '../../calls/family.ts'
import { type Clock, unixSeconds } from '../../kit/clock.ts'
import { randomAlphanumerics } from '../../kit/secret.ts'
import type { CatalogueModel } from '../../models/catalogue.ts'
import { errorForClient, type TextCompletionInput } from '../../protocols/chatcompat/client/text-request.ts'
import {
  createTextCompletionEncoder,
  type TextCompletionEncoder,
} from '../../protocols/chatcompat/client/text-response.ts'
import { GatewayError } from '../../spec/error.ts'
import type { TextCompletion } from '../../spec/text-completion.ts'
import { type Units, type Usage, unitsOfUsage, usageFrom } from '../../spec/usage.ts'
import type { Chat, ChatWork } from './chat.ts'
import { estimateChat } from './estimate.ts'
import { chatFacts } from './facts.ts'
import { mergeStreams } from './merge-streams.ts'
import type { ChatMeter } from './meter.ts'

type Work = { parts: ChatWork[]; encoder: TextCompletionEncoder; model: CatalogueModel }
type TextMeter = Meter<Usage> & {
  parts: ChatMeter[]
  /** One of the prompts has failed before the response has begun: none of them is delivered. */
  fail(): void
}
type Whole = { encode(usage: Usage): TextCompletion }

type TextCompletions = {
  whole: Family<TextCompletionInput, Work, Whole, TextMeter>
  stream: StreamFamily<TextCompletionInput, Work, TextMeter>
}

export function createTextCompletions(chat: Chat, clock: Clock): TextCompletions {
  function fit(model: CatalogueModel, input: TextCompletionInput, call: Call): Work {
    const id = `cmpl-${randomAlphanumerics(24)}`
    const created = unixSeconds(clock)
    const encoder = createTextCompletionEncoder(input, { id, created, model: model.id })
    const parts = input.requests.map((request, at) =>
      inClientTerms(request, placeOf(at, input.requests), () =>
        chat.whole.fit(
          model,
          { family: 'chatcompat', request, answer: { id, created }, writer: () => encoder.of(at) },
          call,
        ),
      ),
    )
    return { parts, encoder, model }
  }

  /** Sends the request of each prompt at once. The first failure aborts the others. */
  async function sendAll<Answer>(
    { parts }: Work,
    { call, attempt }: Execution<TextMeter>,
    family: ByTarget<ChatWork, Answer, ChatMeter>,
  ): Promise<{ answers: Answer[]; control: AbortController }> {
    const control = new AbortController()
    const { request_id, caller, arrived } = call
    const own = { request_id, caller, arrived, signal: AbortSignal.any([call.signal, control.signal]) }
    let fail = () => {}
    /** One prompt, which counts in its own meter. */
    const sendPart = (part: ChatWork, at: number) =>
      attempt(family.targets(part), async (target, { signal, meter }) => {
        fail = meter.fail
        const either = AbortSignal.any([signal, control.signal])
        const partMeter = meter.parts[at] ?? chat.whole.meter(part)
        const tried = { call: own, signal: either, meter: partMeter }
        return await sendAndRead(family, { target, work: part, tried })
      })
    try {
      const answers = parts.map((part, at) => inClientTerms(part.request, placeOf(at, parts), () => sendPart(part, at)))
      return { answers: await Promise.all(answers), control }
    } catch (thrown) {
      fail()
      control.abort(OTHER_FAILED)
      throw thrown
    }
  }

  const shared = {
    endpoint: () => 'chatcompat' as const,
    modelOf: ({ requests: [first] }: TextCompletionInput) => first?.model,
    fit,
    meter: ({ parts, model }: Work) =>
      meterOf(
        parts.map((part) => chat.whole.meter(part)),
        (at) =>
          estimateChat(
            parts.slice(at, at + 1).map(({ request }) => request),
            model,
          ).most,
      ),
    policy: chat.whole.policy,
    estimate: ({ parts }: Work, model: CatalogueModel) =>
      estimateChat(
        parts.map(({ request }) => request),
        model,
      ),
    guarded: {
      input: ({ parts }: Work, call: Call) => parts.flatMap((part) => chat.whole.guarded?.input(part, call) ?? []),
    },
    facts: ({ parts }: Work) => chatFacts(parts.map(({ request }) => request)),
    // A second try would count in another meter than the other prompts.
    is_hedged: false as const,
    attemptsAtOnce: ({ parts }: Work) => parts.length > 1,
  }

  return {
    whole: {
      ...shared,
      async execute(work, execution) {
        const { answers } = await sendAll(work, execution, chat.whole)
        return {
          encode(usage) {
            for (const answer of answers) answer.encode(usage)
            return work.encoder.whole(usage)
          },
        }
      },
    },
    stream: {
      ...shared,
      async execute(work, execution): Promise<ResponseStream<Usage>> {
        const { answers, control } = await sendAll(work, execution, chat.stream)
        const { includesUsage, end } = work.encoder
        const sources = answers.map(({ parts }, at) => inTermsOf(parts, work.parts, at))
        return { parts: mergeStreams(sources, control), includesUsage, end }
      },
      encodeError: (error, { encoder }) => encoder.fail(error),
    },
  }
}

/** Of a prompt that was ended because another one failed: it says nothing about its target, and no other is tried. */
const OTHER_FAILED = new GatewayError('client_closed_request', 'Another prompt of the request has failed.')

const placeOf = (at: number, all: unknown[]): number | undefined => (all.length > 1 ? at : undefined)

type ChatWorkRequest = ChatWork['request']

function inClientTerms<T>(request: ChatWorkRequest, at: number | undefined, run: () => T): T {
  const translated = (thrown: unknown): unknown =>
    thrown instanceof GatewayError ? errorForClient(thrown, request, at) : thrown
  try {
    const result = run()
    if (!(result instanceof Promise)) return result
    return result.catch((thrown: unknown) => Promise.reject(translated(thrown))) as T
  } catch (thrown) {
    throw translated(thrown)
  }
}

/** The same stream; a failure has the fields of this API. */
async function* inTermsOf<T>(source: AsyncIterable<T>, all: ChatWork[], at: number): AsyncGenerator<T> {
  try {
    yield* source
  } catch (thrown) {
    const { request } = all[at] ?? {}
    throw thrown instanceof GatewayError && request ? errorForClient(thrown, request, placeOf(at, all)) : thrown
  }
}

/**
 * The usage of all prompts together, once the response has begun. A prompt of which nothing came, because another one broke
 * off, counts at the most that it can have used.
 */
function meterOf(parts: ChatMeter[], mostOf: (at: number) => Units): TextMeter {
  const usageOf = (part: ChatMeter, at: number): Usage | Promise<Usage> => {
    if (part.hasCounted()) return part.usage()
    const { input_tokens: input, output_tokens: output } = mostOf(at)
    return usageFrom({ input, output, estimated: true })
  }
  let hasFailed = false
  return {
    parts,
    fail() {
      hasFailed = true
    },
    hasCounted: () => !hasFailed && parts.some((part) => part.hasCounted()),
    usage: async () => sumOf(await Promise.all(parts.map(usageOf))),
    units: unitsOfUsage,
  }
}

function sumOf(usages: Usage[]): Usage {
  const [first] = usages
  if (first && usages.length === 1) return first
  const sum = (count: (usage: Usage) => number) => usages.reduce((total, usage) => total + count(usage), 0)
  return usageFrom({
    input: sum((usage) => usage.prompt_tokens),
    output: sum((usage) => usage.completion_tokens),
    cached: sum((usage) => usage.prompt_tokens_details.cached_tokens),
    cache_write: sum((usage) => usage.prompt_tokens_details.cache_write_tokens ?? 0),
    cache_write_1h: sum((usage) => usage.prompt_tokens_details.cache_write_1h_tokens ?? 0),
    input_audio: sum((usage) => usage.prompt_tokens_details.audio_tokens),
    input_image: sum((usage) => usage.prompt_tokens_details.image_tokens),
    output_audio: sum((usage) => usage.completion_tokens_details.audio_tokens),
    reasoning: sum((usage) => usage.completion_tokens_details.reasoning_tokens),
    estimated: usages.some(({ estimated }) => estimated),
  })
}
