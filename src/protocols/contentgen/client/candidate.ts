/**
 * Builds one candidate of a contentgen response: parts in the order in which the model produced them, and each call
 * whole.
 */
import { isRecord, parseExactJson } from '../../../kit/json.ts'
import { randomAlphanumerics } from '../../../kit/secret.ts'
import type { Annotation, FinishReason } from '../../../spec/chat-completion.ts'
import type { Delta, GeneratedImage, Opaque, Reasoning, ToolCall } from '../../shared/canonical.ts'
import { groundingOf } from './grounding.ts'
import { encodeSignature, isPlain } from './signed-content.ts'

export type AnswerPart = {
  text?: string
  thought?: true
  thoughtSignature?: string
  functionCall?: { id: string; name: string; args: object }
  inlineData?: { mimeType: string; data: string }
}

export type Candidate = ReturnType<typeof createCandidate>

type Call = { id: string; name: string; arguments: string; opaque?: Opaque | undefined }

const FINISH_REASONS: Record<FinishReason, string> = {
  stop: 'STOP',
  length: 'MAX_TOKENS',
  tool_calls: 'STOP',
  content_filter: 'SAFETY',
}

/**
 * `shows_thoughts`: the client requested thoughts. Otherwise the signature of the next part holds those that a
 * provider needs again.
 */
export function createCandidate({ shows_thoughts }: { shows_thoughts: boolean }) {
  let ready: AnswerPart[] = []
  /** Calls whose arguments may be incomplete; undefined for a call that was released. */
  const calls = new Map<number, Call | undefined>()
  /** Pieces of reasoning that the client has not received. */
  let pending: Reasoning[] = []
  /** Pieces that the client has received as thoughts since the last call. */
  let shown: Reasoning[] = []
  let isReasoning = false
  let pendingText = ''
  /** The text so far, which citations quote. */
  let fullText = ''
  const annotations: Annotation[] = []
  let malformed = ''
  let hasRefused = false
  let reason: FinishReason = 'stop'

  const add = (part: AnswerPart, signature?: string) =>
    void ready.push(signature === undefined ? part : { ...part, thoughtSignature: signature })

  /** `isOpen`: the piece extends the last one. */
  function noteShown(piece: Reasoning, isOpen: boolean): void {
    const last = shown.at(-1)
    if (!isOpen || !last) shown.push({ ...piece })
    else Object.assign(last, piece, { text: (last.text ?? '') + (piece.text ?? '') })
  }

  function takeThought(text: string): void {
    const isOpen = isReasoning
    isReasoning = true
    if (!shows_thoughts) {
      pendingText += text
      return
    }
    noteShown({ text }, isOpen)
    const last = ready.at(-1)
    if (last?.thought && last.thoughtSignature === undefined) last.text += text
    else add({ text, thought: true })
  }

  /** Ends a piece of reasoning: the one being streamed, or one that arrives whole. */
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
      noteShown(signed, true)
      if (last?.thought && last.thoughtSignature === undefined) last.thoughtSignature = signature
      else add({ text: '', thought: true }, signature)
    } else if (text) {
      noteShown({ text, ...signed }, false)
      add({ text, thought: true }, encodeSignature({ own: opaque }))
    }
    // Clients that join parts lose a part without text. The next part with text holds the signature.
    else if (opaque) pending.push({ ...(text === undefined ? {} : { text }), ...signed })
  }

  /** Places the signature as the vendor's own models do: on the last text, or on an empty text after it. */
  function signText(signature: string): void {
    const last = ready.at(-1)
    if (last?.text !== undefined && !last.thought && last.thoughtSignature === undefined)
      last.thoughtSignature = signature
    else add({ text: '' }, signature)
  }

  /** The reasoning that the next part holds. Unsigned reasoning is only needed again with a call. */
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
    // The media type, and the fact that the data after the comma is base64.
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

  /** Releases pending calls in order: all of them, or with `complete` those before the first incomplete one. */
  function releaseCalls({ complete }: { complete: boolean }): void {
    for (const [key, call] of calls) {
      if (!call) continue
      if (complete && !call.arguments.trimEnd().endsWith('}')) return
      const args = argumentsOf(call.arguments)
      if (!args && complete) return
      calls.set(key, undefined)
      if (!args) malformed ||= `The arguments of a call of ${JSON.stringify(call.name)} are not a JSON object.`
      else {
        const signature = encodeSignature({ own: call.opaque, before: takePending(true), shown })
        shown = []
        add({ functionCall: { id: call.id, name: call.name, args } }, signature)
      }
    }
  }

  return {
    take(delta: Delta): void {
      const { content, refusal, reasoning_content, reasoning_details = [] } = delta
      // A whole piece of reasoning repeats its text as plain text.
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
    /** Call it at the end: it releases what is still pending. */
    finish(finish: FinishReason): void {
      reason = finish
      releaseCalls({ complete: false })
      const rest = takePending(false)
      if (rest.length > 0) add({ text: '' }, textSignature(rest))
    },
    /** The parts that were not returned before. */
    parts() {
      const parts = ready
      ready = []
      return parts
    },
    /** The finish reason and the grounding. `text_at`: the index of the text among the parts. */
    closing(text_at = 0) {
      // A call that was cut by the token limit ends with the limit's finish reason.
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

/** A single signature of this API that belongs to a text is sent unchanged. */
function textSignature(before: Reasoning[]): string | undefined {
  const [only] = before
  if (before.length === 1 && only?.opaque && only.text === undefined && isPlain(only.opaque)) return only.opaque.value
  return encodeSignature({ before })
}

const newId = () => `call_${randomAlphanumerics(24)}`

/** Returns undefined if the arguments are not an object. */
function argumentsOf(text: string): object | undefined {
  if (text.trim() === '') return {}
  const value = parseExactJson(text)
  return isRecord(value) ? value : undefined
}
