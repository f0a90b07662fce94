/** Normalises streamed tool calls to the form that clients accept: id and name once and first, then arguments. */
import { asRecord, isRecord, type JsonRecord } from '../../../kit/json.ts'
import type { ToolCall } from '../../shared/canonical.ts'
import { ARGUMENTS_END, ARGUMENTS_START, argumentsPiece } from '../../shared/custom-tools.ts'
import { argumentsText, namedText, newToolCallId } from '../../shared/upstream.ts'

/** The member of a call that holds its arguments: some providers send the object itself. */
export const ARGUMENTS = ['arguments']

export type ToolCallDeltas = ReturnType<typeof createToolCallDeltas>

type Call = {
  /** Position among the calls of this choice; set when the call is first sent. */
  index: number | undefined
  vendorIndex: number | undefined
  vendorId: string | undefined
  id: string
  name: string | undefined
  /** Arguments that arrived before the name. */
  waiting: string
  isCustom: boolean
  /** Other members of the call, such as Gemini's signature, which must be returned in the history. */
  extras: JsonRecord
}

/** The state of the tool calls of one choice during a stream. */
export function createToolCallDeltas() {
  const calls: Call[] = []
  let sent = 0

  /** The call that a delta belongs to: by id, by index, or else the last one. */
  function find(
    vendorIndex: number | undefined,
    vendorId: string | undefined,
    name: string | undefined,
  ): Call | undefined {
    if (vendorId !== undefined) {
      const same = calls.find((call) => call.vendorId === vendorId)
      if (same) return same
    }
    const last = vendorIndex === undefined ? calls.at(-1) : calls.findLast((call) => call.vendorIndex === vendorIndex)
    if (!last) return undefined
    // Some providers give every parallel call the index 0, but each has an id and a name.
    const isAnother = vendorId !== undefined && last.vendorId !== undefined && name !== undefined
    // Without an index and an id, a new name means a new call.
    const isNamedAnew =
      vendorIndex === undefined && vendorId === undefined && name !== undefined && last.name !== undefined
    return isAnother || isNamedAnew ? undefined : last
  }

  function takeOne(raw: unknown): ToolCall | undefined {
    if (!isRecord(raw)) return undefined
    const { index, id, type: _, function: rawFunction, custom, ...extras } = raw
    const described = isRecord(rawFunction) ? rawFunction : asRecord(custom)
    const vendorIndex = Number.isInteger(index) ? Number(index) : undefined
    const vendorId = namedText(id)
    const name = namedText(described.name)
    let call = find(vendorIndex, vendorId, name)
    if (!call) {
      call = {
        index: undefined,
        vendorIndex,
        vendorId,
        id: vendorId ?? newToolCallId(),
        name: undefined,
        waiting: isRecord(custom) ? ARGUMENTS_START : '',
        isCustom: isRecord(custom),
        extras,
      }
      calls.push(call)
    }
    call.vendorId ??= vendorId
    const text = call.isCustom
      ? argumentsPiece(typeof described.input === 'string' ? described.input : '')
      : argumentsText(described.arguments)
    if (call.index !== undefined) {
      return text === '' ? undefined : { index: call.index, function: { arguments: text } }
    }
    call.waiting += text
    call.name ??= name
    // A call without a name is not sent: clients drop or reject it.
    if (call.name === undefined) return undefined
    if (vendorId !== undefined) call.id = vendorId
    call.index = sent++
    return {
      ...call.extras,
      index: call.index,
      id: call.id,
      type: 'function',
      function: { name: call.name, arguments: call.waiting },
    }
  }

  return {
    take(list: unknown[]): ToolCall[] {
      const out: ToolCall[] = []
      for (const raw of list) {
        const call = takeOne(raw)
        if (call) out.push(call)
      }
      return out
    },
    /** The ends of the arguments of custom calls, which have the form of functions here. */
    close: (): ToolCall[] =>
      calls.flatMap(({ index, isCustom }) =>
        isCustom && index !== undefined ? [{ index, function: { arguments: ARGUMENTS_END } }] : [],
      ),
    /** The number of calls sent to the client. A call without a name cannot be executed and does not count. */
    count: () => sent,
  }
}
