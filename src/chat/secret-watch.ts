/** Ends a stream in which a provider sends one of its own secrets, split over several deltas. */

import type { ChatChunk } from '../protocols/canonical.ts'
import type { Provider } from '../providers/provider.ts'
import { GatewayError } from '../spec/error.ts'
import type { ChatMeter } from './meter.ts'

/**
 * A secret within one event is replaced where the provider's bytes are read. One that is split over events cannot be
 * replaced any more, so half of it ends the stream. Deltas of several choices are checked as one text.
 */
export function watchSecrets(meter: ChatMeter, { id, watchDeltas }: Provider): ChatMeter {
  const watch = watchDeltas?.()
  if (!watch) return meter
  const take = (text: string | null | undefined) => {
    if (!text || !watch.completes(text)) return
    throw new GatewayError(
      'bad_upstream_response',
      `The upstream "${id}" repeated the gateway's credentials in its answer, which was ended there. Tell the operator.`,
    )
  }
  const takeAll = (chunk: ChatChunk) => {
    for (const { delta } of chunk.choices) {
      take(delta.content)
      take(delta.reasoning_content)
      take(delta.refusal)
      if (delta.tool_calls) for (const call of delta.tool_calls) take(call.function?.arguments)
    }
  }
  return {
    usage: () => meter.usage(),
    units: (usage) => meter.units(usage),
    hasCounted: () => meter.hasCounted(),
    countWhole: (answer) => meter.countWhole(answer),
    count(batch) {
      for (const chunk of batch) takeAll(chunk)
      meter.count(batch)
    },
    countRaw(text) {
      take(text)
      meter.countRaw(text)
    },
  }
}
