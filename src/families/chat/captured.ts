/** Notes of a response what a capture asks for, as its meter counts it. */
import type { ChatChunk } from '../../protocols/shared/canonical.ts'
import type { Capture, CapturedResponse } from '../../protocols/shared/capture.ts'
import type { CountedWhole } from '../../protocols/shared/protocol.ts'
import type { ChatMeter } from './meter.ts'

/** A response with more tool calls or choices than this is noted in part. */
const MAX_NOTED = 128

type ToolCallPart = { index?: number; id?: string; function?: { name?: string; arguments?: string } }

/** The same meter, which also notes. Of two tries at the same time, the one that goes on is noted. */
export function captured(meter: ChatMeter, capture: Capture): ChatMeter {
  const noted: CapturedResponse = { finish_reasons: [], tool_calls: [], texts: [], characters: 0 }

  function addText(text: string | null | undefined, is_raw: boolean, choice: number): void {
    const left = capture.max_characters - noted.characters
    if (!text || left <= 0) return
    // Cut at its end, raw text could end within an escape: the piece that is too long is kept whole, up to twice the bound.
    const kept = is_raw ? (text.length <= 2 * capture.max_characters ? text : '') : text.slice(0, left)
    noted.texts.push({ text: kept, is_raw, choice })
    noted.characters += text.length
  }

  function addCalls(choice: number, calls: readonly ToolCallPart[] | undefined): void {
    calls?.forEach((call, position) => {
      const index = call.index ?? position
      let known = noted.tool_calls.find((one) => one.choice === choice && one.index === index)
      if (!known) {
        if (noted.tool_calls.length >= MAX_NOTED) return
        known = { choice, index, id: '', name: '', arguments: '' }
        noted.tool_calls.push(known)
      }
      known.id ||= call.id ?? ''
      known.name ||= call.function?.name ?? ''
      const left = capture.max_characters - noted.characters
      const text = call.function?.arguments
      if (!text || left <= 0) return
      known.arguments += text.slice(0, left)
      noted.characters += text.length
    })
  }

  function end(choice: number, reason: string | null | undefined): void {
    if (reason && choice >= 0 && choice < MAX_NOTED) noted.finish_reasons[choice] = reason
  }

  return {
    usage: () => meter.usage(),
    units: (usage) => meter.units(usage),
    hasCounted: () => meter.hasCounted(),
    hasDelivered: () => meter.hasDelivered(),
    count(batch: ChatChunk[]) {
      meter.count(batch)
      capture.response = noted
      for (const { choices } of batch)
        for (const { index, delta, finish_reason } of choices) {
          addText(delta.content, false, index)
          addCalls(index, delta.tool_calls)
          end(index, finish_reason)
        }
    },
    countRaw(text) {
      meter.countRaw(text)
      capture.response = noted
      addText(text, true, 0)
    },
    countWhole(answer: CountedWhole) {
      meter.countWhole(answer)
      capture.response = noted
      for (const { index, message, finish_reason } of answer.choices) {
        addText(message.content, false, index)
        addCalls(index, message.tool_calls)
        end(index, finish_reason)
      }
    },
  }
}
