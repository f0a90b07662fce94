/** The small things of an answer in the house's words: citations, probabilities of tokens, texts of reasoning. */

import { isRecord, type JsonRecord } from '../../../kit/json.ts'
import type { Annotation } from '../../../spec/chat-completion.ts'

/** `start` is where its text begins in the whole answer. Citations of the vendor's own files mean nothing to others. */
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

/** As chat completions have them; undefined where there are none. */
export function logprobsOf(raw: unknown): JsonRecord[] | undefined {
  if (!Array.isArray(raw)) return undefined
  const tokens = raw.filter(isRecord).flatMap((one) => tokenOf(one))
  return tokens.length === 0 ? undefined : tokens
}

function tokenOf(raw: JsonRecord): JsonRecord[] {
  const one = probabilityOf(raw)
  if (!one) return []
  const others = Array.isArray(raw.top_logprobs) ? raw.top_logprobs.filter(isRecord) : []
  return [{ ...one, top_logprobs: others.map(probabilityOf).filter((other) => other !== undefined) }]
}

function probabilityOf({ token, logprob, bytes }: JsonRecord): JsonRecord | undefined {
  if (typeof token !== 'string' || typeof logprob !== 'number') return undefined
  return { token, logprob, bytes: Array.isArray(bytes) ? bytes : [...Buffer.from(token)] }
}

/** All that is told of a piece of reasoning: itself where it is open, else its summary. */
export function thoughtTextOf({ content, summary }: JsonRecord): string {
  return textsOf(content).join('') || textsOf(summary).join(SUMMARY_GAP)
}

/** Between the parts of a summary, which are paragraphs. */
export const SUMMARY_GAP = '\n\n'

const textsOf = (list: unknown): string[] =>
  Array.isArray(list)
    ? list.filter(isRecord).flatMap(({ text }) => (typeof text === 'string' && text !== '' ? [text] : []))
    : []
