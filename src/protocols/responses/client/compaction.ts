/**
 * Compaction for providers that have none: the model writes a summary, which takes the place of the items before it.
 * `compaction_trigger` as the last item asks for it; Codex counts on exactly one `compaction` item in the output
 * (https://github.com/openai/codex, codex-rs/core/src/compact_remote_v2.rs).
 */
import { GatewayError, invalidValue } from '../../../spec/error.ts'
import type { Message } from '../../shared/canonical.ts'
import { MARK } from '../../shared/signed-content.ts'
import { type CompactionItem, createItemEvents, type ItemEventParts, type Open } from './items.ts'
import type { InputItem } from './schema.ts'
import type { ItemStream } from './stream.ts'

const INSTRUCTION =
  'Write a summary of the conversation above, so that another model can continue the work without it. State the goals of ' +
  'the user and every instruction that still applies; decisions and their reasons; what was done, with the exact names of ' +
  'files, commands, identifiers and values; errors and how they were solved; what remains to be done, and the next step. ' +
  'Write only the summary. Do not continue the work, and call no tool.'

const PREFIX = 'Summary of the conversation before this message:\n\n'

/** Not encrypted: the summary is the client's own conversation. */
const SUMMARY = `${MARK}summary.`
const encodeSummary = (text: string): string => SUMMARY + Buffer.from(text).toString('base64url')
const decodeSummary = (text: string): string | undefined =>
  text.startsWith(SUMMARY) ? Buffer.from(text.slice(SUMMARY.length), 'base64url').toString() : undefined

const isTrigger = (item: InputItem | undefined): boolean => item?.type === 'compaction_trigger'

export const isCompaction = (input: readonly InputItem[]): boolean => isTrigger(input.at(-1))

/** The items that a compaction among them has not replaced. */
export function remainingItems(items: InputItem[]): InputItem[] {
  const last = items.findLastIndex((item, at) => isTrigger(item) && isSummaryItem(items[at + 1]))
  const rest = items.slice(last + 1)
  return rest.some(isTrigger) ? rest.filter((item) => !isTrigger(item)) : rest
}

type SummaryItem = Extract<InputItem, { type: 'compaction' | 'compaction_summary' }>
export const isSummaryItem = (item: InputItem | undefined): item is SummaryItem =>
  item?.type === 'compaction' || item?.type === 'compaction_summary'

/** The message that stands for a summary of the gateway; undefined for one that only its own provider can read. */
export function summaryMessage(encrypted_content: unknown): { role: 'user'; content: string } | undefined {
  const summary = typeof encrypted_content === 'string' ? decodeSummary(encrypted_content) : undefined
  return summary === undefined ? undefined : { role: 'user', content: PREFIX + summary }
}

/** The message for a summary, for a provider that has no compaction of its own. */
export function messageOfSummary({ encrypted_content }: SummaryItem, at: string): Message {
  const message = summaryMessage(encrypted_content)
  if (message) return message
  const param = `${at}.encrypted_content`
  const text = `"${param}" was made by another provider, which alone can read it: continue with a model of that provider.`
  throw new GatewayError('unsupported_value', text, { param })
}

/** The message that asks for the summary. */
export function triggerMessage(at: string, isLast: boolean): Message {
  if (isLast) return { role: 'user', content: INSTRUCTION }
  const param = `${at}.type`
  throw invalidValue(param, `"${param}" must be "compaction_trigger" in the last item only.`)
}

type CompactionStream = Pick<ItemStream, 'take' | 'end' | 'output'> & { mcp?: undefined }

/** Encodes the model's text as one compaction item. */
export function createCompactionStream(parts: ItemEventParts): CompactionStream {
  const { output, open, added, done, newId } = createItemEvents(parts)
  let text = ''
  let hasEnded = false
  let item: Open<CompactionItem> | undefined

  function start(): string {
    const id = newId('compaction', 0)
    item = open({ type: 'compaction', id, encrypted_content: '' })
    return added(item)
  }

  return {
    output,
    take({ content }) {
      if (!content) return ''
      text += content
      return item ? '' : start()
    },
    end() {
      if (hasEnded) return ''
      hasEnded = true
      if (!item) throw new GatewayError('bad_upstream_response', 'The model returned no summary of the conversation.')
      item.item.encrypted_content = encodeSummary(text)
      return done(item)
    },
  }
}
