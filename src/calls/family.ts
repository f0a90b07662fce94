/** The contract of a family: its part of the pipeline. Everything else is the same for every family. */
import type { RoutingConfig } from '../config/schema/routing-schema.ts'
import type { Abortable } from '../kit/abortable.ts'
import type { CatalogueModel } from '../models/catalogue.ts'
import type { PassthroughResponse, Target } from '../providers/provider.ts'
import type { CallFamily } from '../spec/endpoint-family.ts'
import type { GatewayError } from '../spec/error.ts'
import type { Estimate } from '../spec/usage.ts'
import type { Call, Meter } from './call.ts'
import type { GuardedText } from './guards/content.ts'
import type { RequestFacts } from './routing/conditions.ts'
import type { AttemptPolicy } from './routing/outcome.ts'

/** A family whose calls use nothing, such as counting tokens, has no meter. */
export type AnyMeter = Meter<unknown> | undefined

/** The usage as it is reported to the client. */
export type UsageOf<M extends AnyMeter> = M extends Meter<infer Usage> ? Usage : undefined

/** `model`, `work`: of the model that served the call, which may be a fallback of the one that was prepared. */
export type Answered<Work, Answer, M extends AnyMeter> = {
  answer: Answer
  usage: UsageOf<M>
  model: CatalogueModel
  work: Work
}

/** `Input`: a parsed request. `Work`: the same, fitted to its model. `Answer`: the result of its calls. */
export type Family<Input, Work, Answer, M extends AnyMeter> = FamilyParts<Input, Work, Answer, M> &
  (ByTarget<Work, Answer, M> | ByItself<Work, Answer, M>)

/** A family whose calls are answered by one target: the pipeline tries one after another. */
export type ByTarget<Work, Answer, M extends AnyMeter> = {
  targets(work: Work): readonly Target[]
  /** Sends the call to one target. Resolves with the answer, or with what `read` makes it of. */
  send(target: Target, work: Work, tried: Try<M>): Promise<Answer | Unread>
  /** Absent: `send` resolves with answers only. A promise only where a body has not arrived as a whole. */
  read?(received: Answer | Unread, served: Served<Work, M>): Answer | Promise<Answer>
  /** Awaited before the first target is called; rejects where the call must not proceed. Absent or undefined: nothing is. */
  beforeSend?(work: Work, call: Call): Promise<void> | undefined
  execute?: undefined
}

/** A family that does more than that, or makes several attempts. */
type ByItself<Work, Answer, M extends AnyMeter> = {
  /** Executes the call, at one target after another through `attempt`. */
  execute(work: Work, execution: Execution<M>): Promise<Answer>
}

type Sending<Work, M extends AnyMeter> = { target: Target; work: Work; tried: Try<M> }

export async function sendAndRead<Work, Answer, M extends AnyMeter>(
  { send, read }: Pick<ByTarget<Work, Answer, M>, 'send' | 'read'>,
  { target, work, tried }: Sending<Work, M>,
): Promise<Answer> {
  const received = await send(target, work, tried)
  return read ? await read(received, { target, work, meter: tried.meter }) : (received as Answer)
}

type FamilyParts<Input, Work, Answer, M extends AnyMeter> = {
  endpoint(input: Input): CallFamily
  /** The model as the client named it; undefined where the family takes requests without one. */
  modelOf(input: Input): string | undefined
  /** Applies ranges, defaults and capabilities of the model. Throws GatewayError that names the field and its rule. */
  fit(model: CatalogueModel, input: Input, call: Call): Work
  meter(work: Work): M
  /** What a call uses, before it is sent. Absent: nothing that is limited or charged, but a request. */
  estimate?(work: Work, model: CatalogueModel): Estimate
  /** False: limits and budgets do not apply to its calls. Absent: true. */
  is_admitted?: false
  /** Whether the client wants to know what the call is charged, as `cost` of its usage. Absent: never. */
  asksForCost?(work: Work): boolean
  /** After which failures the next target is tried. */
  policy: AttemptPolicy
  /** False: how its calls end says nothing about how their targets work. Absent: true. */
  is_observed?: false
  /** False: its calls are never hedged. Absent: true. */
  is_hedged?: false
  /** Whether one call makes several attempts at the same time, which its estimate covers together. Absent: never. */
  attemptsAtOnce?(work: Work): boolean
  /** The texts of its input, for the request log where contents are recorded. Absent: the family notes them itself. */
  texts?(work: Work): string[]
  /** Its contents, for guards. Absent: a call that is to be checked is refused. */
  guarded?: GuardedFamily<Work, Answer>
  /** The least number of tokens that its input can have, cheaply; undefined: not known. */
  leastTokens?(work: Work): number | undefined
  /** What routing may need to know of the request. Absent: nothing is known. */
  facts?(work: Work): RequestFacts
  /** The number that calls of one conversation share; undefined: it is of none. Absent: no call has one. */
  affinity?(work: Work, call: Call, sticky: Sticky): number | undefined
  /** Undefined: the answer is never cached. Absent: no answer of the family is. */
  cacheable?(work: Work): CacheableRequest | undefined
  /** Absent: no whole answer is cached. */
  codec?: AnswerCodec<Work, Answer, UsageOf<M>>
}

/** The texts of a family, each as it can be changed in place. */
type GuardedFamily<Work, Answer> = {
  /** Of a request, which from now on is that of the work, and of no other. */
  input(work: Work, call: Call): GuardedText[]
  /** Of a whole answer. Absent: the family checks it itself, or it has no text. */
  output?(answer: Answer): GuardedText[]
}

/** A request as far as its answer depends on it. */
export type CacheableRequest = {
  /** Everything that changes the answer besides the model and the kind of response; serialized to the key. */
  request: unknown
  /** Whether equal requests are expected to get equal answers. */
  is_deterministic: boolean
  /** For the semantic cache. Absent, or undefined: only an equal request may get the answer. */
  similar?(): SimilarRequest | undefined
}

/** `text`: what may differ in its wording. `rest`: everything else that changes the answer, serialized to a key. */
export type SimilarRequest = { text: string; rest: unknown }

/** How the answers of a family are cached. */
export type AnswerCodec<Work, Answer, Usage> = {
  /** Called once, instead of the encoding for the client: `answer` is then the answer to send. */
  encode(answer: Answer, usage: Usage): { text: string; answer: Answer }
  decode(text: string, work: Work): Answer
}

export const jsonCodec = <Answer>(): AnswerCodec<unknown, Answer, unknown> => ({
  encode: (answer) => ({ text: JSON.stringify(answer), answer }),
  decode: (text) => JSON.parse(text),
})

type Sticky = NonNullable<RoutingConfig['sticky']>

/** A response as it was received from a provider. */
export type Unread = PassthroughResponse

export type Served<Work, M extends AnyMeter> = { readonly target: Target; readonly work: Work; readonly meter: M }

export type Try<M extends AnyMeter> = {
  call: Call
  /** Ends with the call; it may end earlier, when another target is tried instead. */
  readonly signal: AbortSignal
  /** The same, for who needs no signal as such. Absent: `signal` itself. */
  readonly ending?: Abortable
  meter: M
}

export type Execution<M extends AnyMeter> = {
  call: Call
  /** The answer of the first target that succeeds, by the family's policy. */
  attempt<Answer>(
    targets: readonly Target[],
    execute: (target: Target, tried: Try<M>) => Promise<Answer>,
  ): Promise<Answer>
}

/** `takeFirst`: the first part where it is there already, to be sent together with the head. */
export type Parts = AsyncIterable<string | Uint8Array> & { takeFirst?(): string | Uint8Array | undefined }

/** A streamed response whose first part has arrived. */
export type ResponseStream<Usage> = {
  /** Encoded for the client; never an empty part. */
  parts: Parts
  /** Whether the end of the stream contains the usage, and waits for it. */
  includesUsage: boolean
  /** The end of a complete stream; may be empty. */
  end(usage: Usage | undefined): string
  /** The end of one that broke; absent: that of the family. */
  fail?(error: GatewayError): string
  /** Stores the response, after its end was encoded and before that is sent. */
  store?(): Promise<void>
}

/** A family whose response is a stream. */
export type StreamFamily<Input, Work, M extends AnyMeter> = Family<Input, Work, ResponseStream<UsageOf<M>>, M> & {
  /** The same error with the field names of the client's protocol. */
  errorForClient?(thrown: unknown, work: Work): unknown
  /** The last part of a stream that failed. */
  encodeError(error: GatewayError, work: Work): string
  /** The parts of a cached stream as a response of its own. Absent: no stream of the family is cached. */
  replay?(parts: string[], work: Work): string[]
}
