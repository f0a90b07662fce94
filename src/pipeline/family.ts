/** What a family brings to the pipeline. All that it does not say here is the same for every family. */
import type { CatalogueModel } from '../models/catalogue.ts'
import type { Target } from '../providers/provider.ts'
import type { AttemptPolicy } from '../routing/attempt.ts'
import type { EndpointFamily } from '../spec/endpoint-family.ts'
import type { GatewayError } from '../spec/error.ts'
import type { Call, Meter } from './call.ts'

/** A family whose calls use nothing, such as counting tokens, has no meter. */
export type AnyMeter = Meter<unknown> | undefined

/** What the client sees of the usage. */
export type UsageOf<M extends AnyMeter> = M extends Meter<infer Usage> ? Usage : undefined

/** `Input`: a request as it was parsed. `Work`: the same, fitted to its model. `Answer`: what `execute` resolves with. */
export type Family<Input, Work, Answer, M extends AnyMeter> = {
  endpoint(input: Input): EndpointFamily
  /** The model as the client wrote it; undefined where the family takes requests without one. */
  modelOf(input: Input): string | undefined
  /** Ranges, defaults and capabilities of the model. Throws GatewayError naming the field and what it may be. */
  fit(model: CatalogueModel, input: Input, call: Call): Work
  meter(work: Work): M
  /** Which failures let the next target be tried. */
  policy: AttemptPolicy
  /** Executes the call, at one target after another through `attempt`. */
  execute(work: Work, execution: Execution<M>): Promise<Answer>
}

export type Execution<M extends AnyMeter> = {
  call: Call
  meter: M
  /** The answer of the first target that gives one, by the family's policy. */
  attempt<Answer>(targets: readonly Target[], execute: (target: Target) => Promise<Answer>): Promise<Answer>
}

/** A streamed answer that has begun: the first part is there. */
export type ResponseStream<Usage> = {
  /** Encoded for the client; never an empty part. */
  parts: AsyncIterable<string | Uint8Array>
  /** Whether the end of the stream carries the usage, and has to wait for it. */
  includesUsage: boolean
  /** The end of a stream that is complete; may be empty. */
  end(usage: Usage | undefined): string
  /** Stores the answer, after its end was encoded and before it is sent. */
  store?(): Promise<void>
}

/** A family whose answer is a stream. */
export type StreamFamily<Input, Work, M extends AnyMeter> = Family<Input, Work, ResponseStream<UsageOf<M>>, M> & {
  /** The same error with the names and places that the client wrote. */
  errorForClient?(thrown: unknown, work: Work): unknown
  /** The last part of a stream that failed. */
  encodeError(error: GatewayError, work: Work): string
}
