/** One answer of the contentgen dialect as it grows: parts in the order in which the model spoke, calls whole. */
import { isRecord, parseJson } from '../../../kit/json.ts'
import { randomAlphanumerics } from '../../../kit/secret.ts'
import type { Annotation, FinishReason } from '../../../spec/chat-completion.ts'
import type { Delta, GeneratedImage, Opaque, Reasoning, ToolCall } from '../../canonical.ts'
import { groundingOf } from './grounding.ts'
import { encodeSignature, isPlain } from './signed-content.ts'

export type AnswerPart = {
  text?: string
  thought?: true
  thoughtSignature?: string
  functionCall?: { id: string; name: string; args: object }
  inlineData?: { mimeType: string; data: string }
}

export type Candidate = {
  take(delta: Delta): void
  /** Nothing more comes: tells what had to wait. */
  finish(finish: FinishReason): void
  /** The parts that were not handed out before. */
  parts(): AnswerPart[]
  /** How it ended, and what the whole of it rests on. `text_at`: the place of the text among the parts. */
  closing(text_at?: number): object
}

type Call = { id: string; name: string; arguments: string; opaque?: Opaque | undefined }

const FINISH_REASONS: Record<FinishReason, string> = {
  stop: 'STOP',
  length: 'MAX_TOKENS',
  tool_calls: 'STOP',
  content_filter: 'SAFETY',
}

/** `shows_thoughts`: the client asked for them. What it did not ask for goes with the next part, if somebody wants it back. */
export function createCandidate({ shows_thoughts }: { shows_thoughts: boolean }): Candidate {
  let ready: AnswerPart[] = []
  /** Calls whose arguments may not be complete; a call that was told is undefined. */
  const calls = new Map<number, Call | undefined>()
  /** Pieces of reasoning that were not shown. */
  let pending: Reasoning[] = []
  let isReasoning = false
  let pendingText = ''
  /** The answer's text, from which citations quote. */
  let fullText = ''
  const annotations: Annotation[] = []
  let malformed = ''
  let hasRefused = false
  let reason: FinishReason = 'stop'

  const add = (part: AnswerPart, signature?: string) =>
    void ready.push(signature === undefined ? part : { ...part, thoughtSignature: signature })

  function takeThought(text: string): void {
    isReasoning = true
    if (!shows_thoughts) {
      pendingText += text
      return
    }
    const last = ready.at(-1)
    if (last?.thought && last.thoughtSignature === undefined) last.text += text
    else add({ text, thought: true })
  }

  /** The end of one piece of reasoning: of the one whose words were told, else of one that comes whole. */
  function endThought({ text, opaque }: Reasoning): void {
    const wasOpen = isReasoning
    isReasoning = false
    const signed = opaque ? { opaque } : {}
    const isOfText = fullText !== '' && !wasOpen && text === undefined
    if (opaque && isOfText && isPlain(opaque)) signText(opaque.value)
    else if (!shows_thoughts) {
      const thought = wasOpen ? pendingText : text
      pendingText = ''
      if (thought !== undefined || opaque)
        pending.push({ ...(thought === undefined ? {} : { text: thought }), ...signed })
    } else if (wasOpen) {
      const last = ready.at(-1)
      const signature = encodeSignature({ own: opaque })
      if (signature === undefined) return
      if (last?.thought && last.thoughtSignature === undefined) last.thoughtSignature = signature
      else add({ text: '', thought: true }, signature)
    } else if (text) add({ text, thought: true }, encodeSignature({ own: opaque }))
    // A part without words is lost by clients that join parts, so the next one with words brings it.
    else if (opaque) pending.push({ ...(text === undefined ? {} : { text }), ...signed })
  }

  /** As the dialect's own vendors do it: at the last words, or at none behind them. */
  function signText(signature: string): void {
    const last = ready.at(-1)
    if (last?.text !== undefined && !last.thought && last.thoughtSignature === undefined)
      last.thoughtSignature = signature
    else add({ text: '' }, signature)
  }

  /** What goes along with the next part. Plain words are wanted back only by those who made calls. */
  function takePending(isCall: boolean): Reasoning[] {
    if (isReasoning && !shows_thoughts) endThought({})
    if (pending.length === 0) return pending
    const released = isCall ? pending : pending.filter(({ opaque }) => opaque)
    pending = isCall ? [] : pending.filter(({ opaque }) => !opaque)
    return released
  }

  function takeText(text: string): void {
    isReasoning &&= !shows_thoughts
    const last = ready.at(-1)
    const before = takePending(false)
    fullText += text
    if (before.length === 0 && last?.text !== undefined && !last.thought) last.text += text
    else add({ text }, textSignature(before))
  }

  function takeImage({ image_url: { url }, opaque }: GeneratedImage): void {
    // A type, and that what follows the comma is base64.
    const [start, mimeType] = /^data:([^;,]{1,100});base64,/.exec(url) ?? []
    if (start === undefined || mimeType === undefined) return
    add(
      { inlineData: { mimeType, data: url.slice(start.length) } },
      encodeSignature({ own: opaque, before: takePending(false) }),
    )
  }

  function takeCall({ index, id, function: part, opaque }: ToolCall, place: number): void {
    const key = index ?? place
    if (!calls.has(key)) {
      releaseCalls({ complete: true })
      calls.set(key, { id: id ?? newId(), name: part.name ?? '', arguments: part.arguments, opaque })
      return
    }
    const call = calls.get(key)
    if (!call) return
    call.arguments += part.arguments
    if (opaque) call.opaque = opaque
  }

  /** Hands on the calls that wait, in their order: all, or the first of them that are complete. */
  function releaseCalls({ complete }: { complete: boolean }): void {
    for (const [key, call] of calls) {
      if (!call) continue
      if (complete && !call.arguments.trimEnd().endsWith('}')) return
      const args = argumentsOf(call.arguments)
      if (!args && complete) return
      calls.set(key, undefined)
      if (!args) malformed ||= `The arguments of a call of ${JSON.stringify(call.name)} are no JSON object.`
      else {
        const signature = encodeSignature({ own: call.opaque, before: takePending(true) })
        add({ functionCall: { id: call.id, name: call.name, args } }, signature)
      }
    }
  }

  return {
    take(delta) {
      const { content, refusal, reasoning_content, reasoning_details = [] } = delta
      // Pieces that come whole say the same again as plain text.
      const isRepeated = !isReasoning && reasoning_details.some((piece) => piece.text !== undefined)
      if (reasoning_content && !isRepeated) takeThought(reasoning_content)
      for (const piece of reasoning_details) endThought(piece)
      if (content || refusal) releaseCalls({ complete: true })
      if (content) takeText(content)
      if (refusal) takeText(refusal)
      hasRefused ||= Boolean(refusal)
      for (const image of delta.images ?? []) takeImage(image)
      for (const [place, call] of (delta.tool_calls ?? []).entries()) takeCall(call, place)
      annotations.push(...(delta.annotations ?? []))
    },
    finish(finish) {
      reason = finish
      releaseCalls({ complete: false })
      const rest = takePending(false)
      if (rest.length > 0) add({ text: '' }, textSignature(rest))
    },
    parts() {
      const parts = ready
      ready = []
      return parts
    },
    closing(text_at = 0) {
      // A call that was cut short at the limit is an end at the limit.
      const isMalformed = malformed !== '' && reason !== 'length'
      const finishReason = isMalformed
        ? 'MALFORMED_FUNCTION_CALL'
        : FINISH_REASONS[hasRefused ? 'content_filter' : reason]
      return {
        finishReason,
        ...(isMalformed ? { finishMessage: malformed } : {}),
        ...(annotations.length > 0 ? { groundingMetadata: groundingOf(annotations, fullText, text_at) } : {}),
      }
    },
  }
}

/** One that is of the dialect's own vendors, and stands for words, is told as it came. */
function textSignature(before: Reasoning[]): string | undefined {
  const [only] = before
  if (before.length === 1 && only?.opaque && only.text === undefined && isPlain(only.opaque)) return only.opaque.value
  return encodeSignature({ before })
}

const newId = () => `call_${randomAlphanumerics(24)}`

/** undefined where they are no object. */
function argumentsOf(text: string): object | undefined {
  if (text.trim() === '') return {}
  const value = parseJson(text)
  return isRecord(value) ? value : undefined
}
