/** Contents to a client that speaks as the vendor does: events pass as bytes, but for the model's name. */

import { isRecord, type JsonRecord, parseJson } from '../../kit/json.ts'
import { withValueAt } from '../../kit/json-span.ts'
import { createSseBlocks, readSseBlock } from '../../kit/sse.ts'
import { createAnswerReader } from '../../providers/contentgen-compat/answer.ts'
import { errorIn } from '../../providers/contentgen-compat/stream.ts'
import { countsOf, usageOf as usageIn } from '../../providers/contentgen-compat/usage.ts'
import { wholeOf } from '../../providers/contentgen-compat/whole.ts'
import { holdsError } from '../../providers/refusal.ts'
import type { ChatChunk } from '../../spec/chat-completion.ts'
import { relayedBody } from './contentgen-outline.ts'
import { usageOf } from './contentgen-writer.ts'
import type { DialectRelay, RelayParts, RelayStep, RelayStream } from './dialect.ts'
import { escapeLineEnds, fromBytes, nothingYet, pushed, toBytes } from './relay-bytes.ts'

/** What the writer of an error must know: whether anything was told before it. */
export type Passed = { hasBegun: boolean }

export const contentgenRelay = (passed: Passed): DialectRelay => ({
  headers: [],
  body: relayedBody,
  whole: readWhole,
  stream: (parts) => createContentgenStream(parts, passed),
})

function readWhole(text: string, parts: RelayParts): ReturnType<DialectRelay['whole']> {
  const { head, faults, writer } = parts
  const payload = parseJson(text)
  const pieces = [payload].flat()
  if (pieces.length === 0 || !pieces.every(isRecord)) {
    throw faults.notUnderstood('answered with something that is not a JSON object')
  }
  const failed = pieces.find(holdsError)
  if (failed) throw faults.inAnswer(failed)
  const counter = createCounter(parts)
  const chunks = pieces.flatMap(counter.take)
  if (!counter.hasSaid()) throw faults.notUnderstood('answered with JSON that holds no answer')
  const answer = wholeOf([...chunks, counter.end()], head)
  return {
    answer,
    write(usage) {
      // The pieces of a stream where an answer in one piece was asked for.
      if (!isRecord(payload)) return writer.whole(answer, usage)
      return isRecord(payload.usageMetadata)
        ? withValueAt(text, ['modelVersion'], JSON.stringify(head.model))
        : JSON.stringify({ ...payload, usageMetadata: usageOf(usage), modelVersion: head.model })
    },
  }
}

/** What the meter must hear. The vendor's own words for a refusal or a failure pass, and are an end like another. */
function createCounter({ head, faults }: RelayParts) {
  const reader = createAnswerReader({
    fallback: head,
    // A refused prompt never comes as far as the reader.
    faults: { ...faults, blocked: faults.notUnderstood },
    one_call: false,
  })
  let counts: JsonRecord = {}
  let isBlocked = false
  let hasSaid = false
  return {
    take(payload: JsonRecord): ChatChunk[] {
      counts = countsOf(payload.usageMetadata, counts)
      if (!Array.isArray(payload.candidates) || payload.candidates.length === 0) {
        isBlocked ||= !hasSaid && isRecord(payload.promptFeedback) && Boolean(payload.promptFeedback.blockReason)
        return []
      }
      hasSaid = true
      return reader.take(payload)
    },
    hasSaid: () => hasSaid || isBlocked,
    isFinished: () => isBlocked || reader.isFinished(),
    /** That the answer is whole, and what it has used. */
    end(): ChatChunk {
      const usage = usageIn(counts)
      const choices = [{ index: 0, delta: {}, finish_reason: 'stop' as const }]
      return { ...head, object: 'chat.completion.chunk', choices, ...(usage ? { usage } : {}) }
    },
  }
}

function createContentgenStream(parts: RelayParts, passed: Passed): RelayStream {
  const { head, faults } = parts
  const blocks = createSseBlocks()
  const counter = createCounter(parts)
  const model = toBytes(JSON.stringify(head.model))
  /** The last thing that was no plain event: the vendor may break off with an error as bare JSON. */
  let odd = ''

  /** What the client gets for an event, given how it came. */
  function read(event: string, step: RelayStep, atEnd: boolean): string {
    const said = readSseBlock(event)
    if (!said?.isPlain) odd = event
    // Imitators end as other vendors do, and keep connections alive with nothing.
    if (!said || said.data === '' || said.data.trim() === '[DONE]') return ''
    const came = parseJson(fromBytes(said.data))
    // At the end an event may be half there.
    if (came === undefined && atEnd) return ''
    const payload: unknown = Array.isArray(came) ? came[0] : came
    if (!isRecord(payload)) {
      step.failure = faults.notUnderstood('sent something that is not a JSON object')
      return ''
    }
    if (said.event === 'error' || holdsError(payload)) {
      step.failure = faults.inAnswer(payload)
      return ''
    }
    step.heard.push(...counter.take(payload))
    const isItself = payload === came
    const data = withValueAt(isItself ? said.data : toBytes(JSON.stringify(payload)), ['modelVersion'], model)
    return isItself && data === said.data && said.isPlain ? event : `data: ${data}\n\n`
  }

  function take(text: string, atEnd: boolean): RelayStep {
    const step = nothingYet()
    let at = 0
    while (at < text.length && !step.failure) {
      const end = text.indexOf('\n\n', at) + 2
      step.events += read(text.slice(at, end), step, atEnd)
      at = end
    }
    step.events = escapeLineEnds(step.events)
    passed.hasBegun ||= step.events !== ''
    return step
  }

  return {
    push: (bytes) => take(pushed(blocks, bytes, faults), false),
    close() {
      const step = take(blocks.end(), true)
      if (step.failure) return step
      if (counter.isFinished()) step.heard.push(counter.end())
      else {
        const said = errorIn(fromBytes(odd))
        step.failure = said === undefined ? faults.cut() : faults.inAnswer(said)
      }
      return step
    },
    isFinished: counter.isFinished,
    tellsUsage: false,
    end: () => '',
  }
}
