/** Decodes citations, log probabilities and reasoning texts. */
import { isRecord, type JsonRecord, recordsIn } from '../../../kit/json.ts'
import type { Annotation } from '../../../spec/chat-completion.ts'

/** `start`: where the text starts in the whole response. Citations of files at the vendor are dropped. */
export function citationOf(raw: unknown, start: number): Annotation | undefined {
  if (!isRecord(raw) || raw.type !== 'url_citation' || typeof raw.url !== 'string') return undefined
  const from = placeOf(raw.start_index)
  return {
    type: 'url_citation',
    url_citation: {
      start_index: start + from,
      end_index: start + Math.max(from, placeOf(raw.end_index)),
      url: raw.url,
      title: typeof raw.title === 'string' ? raw.title : '',
    },
  }
}

const placeOf = (value: unknown): number => (Number.isInteger(value) && Number(value) >= 0 ? Number(value) : 0)

/** In the format of chat completions; undefined if there are none. */
export function logprobsOf(raw: unknown): JsonRecord[] | undefined {
  if (!Array.isArray(raw)) return undefined
  const tokens = raw.filter(isRecord).flatMap((one) => tokenOf(one))
  return tokens.length === 0 ? undefined : tokens
}

function tokenOf(raw: JsonRecord): JsonRecord[] {
  const one = probabilityOf(raw)
  if (!one) return []
  const others = recordsIn(raw.top_logprobs)
  return [{ ...one, top_logprobs: others.map(probabilityOf).filter((other) => other !== undefined) }]
}

function probabilityOf({ token, logprob, bytes }: JsonRecord): JsonRecord | undefined {
  if (typeof token !== 'string' || typeof logprob !== 'number') return undefined
  return { token, logprob, bytes: Array.isArray(bytes) ? bytes : [...Buffer.from(token)] }
}

/** The text of a piece of reasoning: the reasoning itself if it is open, otherwise its summary. */
export function thoughtTextOf({ content, summary }: JsonRecord): string {
  return textsOf(content).join('') || textsOf(summary).join(SUMMARY_GAP)
}

/** The separator of the parts of a summary, which are paragraphs. */
export const SUMMARY_GAP = '\n\n'

const textsOf = (list: unknown): string[] =>
  Array.isArray(list)
    ? list.filter(isRecord).flatMap(({ text }) => (typeof text === 'string' && text !== '' ? [text] : []))
    : []
