/** Encodes citations and log probabilities in the format of contentgen clients. */
import type { Annotation } from '../../../spec/chat-completion.ts'

type Support = { segment: object; groundingChunkIndices: number[] }

/**
 * The pages, and the segments of text that they support, with offsets in bytes. `part`: the index of the text among
 * the parts.
 */
export function groundingOf(annotations: Annotation[], text: string, part: number) {
  const pages = new Map<string, { index: number; title: string }>()
  const supports = new Map<string, Support>()
  for (const { url_citation: cited } of annotations) {
    const page = pages.get(cited.url) ?? { index: pages.size, title: cited.title }
    pages.set(cited.url, page)
    const start = Math.max(0, cited.start_index)
    const end = Math.max(start, Math.min(text.length, cited.end_index))
    const key = `${start} ${end}`
    const support = supports.get(key) ?? { segment: segmentOf({ text, start, end, part }), groundingChunkIndices: [] }
    if (!support.groundingChunkIndices.includes(page.index)) support.groundingChunkIndices.push(page.index)
    supports.set(key, support)
  }
  return {
    groundingChunks: [...pages].map(([uri, { title }]) => ({ web: { uri, title } })),
    groundingSupports: [...supports.values()],
  }
}

type Place = { text: string; start: number; end: number; part: number }

function segmentOf({ text, start, end, part }: Place): object {
  const startIndex = Buffer.byteLength(text.slice(0, start))
  const quoted = text.slice(start, end)
  return {
    ...(part === 0 ? {} : { partIndex: part }),
    startIndex,
    endIndex: startIndex + Buffer.byteLength(quoted),
    text: quoted,
  }
}

type LogprobsResult = { chosenCandidates: Token[]; topCandidates: { candidates: Token[] }[] }
type Token = { token: string; logProbability: number }

/** `logprobs.content` of a choice; undefined if there is none. */
export function logprobsOf(logprobs: unknown): LogprobsResult | undefined {
  const content = isObject(logprobs) ? logprobs.content : undefined
  if (!Array.isArray(content) || content.length === 0) return undefined
  const tokens = content.filter(isObject)
  return {
    chosenCandidates: tokens.map(tokenOf),
    topCandidates: tokens.map(({ top_logprobs }) => ({
      candidates: Array.isArray(top_logprobs) ? top_logprobs.filter(isObject).map(tokenOf) : [],
    })),
  }
}

const tokenOf = ({ token, logprob }: Record<string, unknown>): Token => ({
  token: String(token),
  logProbability: Number(logprob),
})

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null
