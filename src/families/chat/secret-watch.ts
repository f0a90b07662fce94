/** Ends a stream in which a provider sends one of its own secrets, split over several deltas. */

import type { ChatChunk } from '../../protocols/shared/canonical.ts'
import type { Provider } from '../../providers/provider.ts'
import { GatewayError } from '../../spec/error.ts'
import type { Units, Usage } from '../../spec/usage.ts'
import type { ChatMeter } from './meter.ts'

type DeltaWatch = NonNullable<ReturnType<NonNullable<Provider['watchDeltas']>>>

/**
 * A secret within one event is replaced where the provider's bytes are read. One that is split over events cannot be
 * replaced any more, so half of it ends the stream. Deltas of several choices are checked as one text.
 */
export function watchSecrets(meter: ChatMeter, { id, watchDeltas }: Provider): ChatMeter {
  const watch = watchDeltas?.()
  return watch ? new WatchingMeter(id, meter, watch) : meter
}

/** The same meter, which also watches. */
class WatchingMeter implements ChatMeter {
  readonly #provider: string
  readonly #meter: ChatMeter
  readonly #watch: DeltaWatch

  constructor(provider: string, meter: ChatMeter, watch: DeltaWatch) {
    this.#provider = provider
    this.#meter = meter
    this.#watch = watch
  }

  usage(): Usage | Promise<Usage> {
    return this.#meter.usage()
  }

  units(usage: Usage): Units {
    return this.#meter.units(usage)
  }

  hasCounted(): boolean {
    return this.#meter.hasCounted()
  }

  hasDelivered(): boolean {
    return this.#meter.hasDelivered()
  }

  countWhole(answer: Parameters<ChatMeter['countWhole']>[0]): void {
    this.#meter.countWhole(answer)
  }

  count(batch: ChatChunk[]): void {
    for (const { choices } of batch) {
      for (const { delta } of choices) {
        this.#take(delta.content)
        this.#take(delta.reasoning_content)
        this.#take(delta.refusal)
        if (delta.tool_calls) for (const call of delta.tool_calls) this.#take(call.function?.arguments)
      }
    }
    this.#meter.count(batch)
  }

  countRaw(text: string): void {
    this.#take(text)
    this.#meter.countRaw(text)
  }

  #take(text: string | null | undefined): void {
    if (!text || !this.#watch.completes(text)) return
    throw new GatewayError(
      'bad_upstream_response',
      `The upstream "${this.#provider}" repeated the gateway's credentials in its answer, which was ended there. Tell the operator.`,
    )
  }
}
