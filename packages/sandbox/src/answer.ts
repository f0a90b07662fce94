/** Generates the choices of an answer: their reasoning, text and tool calls, split into tokens. */
import type { ChatRequest } from '../../../src/providers/provider.ts'
import type { Annotation, FinishReason } from '../../../src/spec/chat-completion.ts'
import { MAX_AUDIO_CHARACTERS, outputAudioTokens } from './chat-audio.ts'
import { requestedSources, withCitations } from './citations.ts'
import { describeImage } from './image-header.ts'
import { sampleFromSchema } from './json-schema-sample.ts'
import type { Manual } from './manual-search.ts'
import { hintsOf, type Prompt } from './prompt.ts'
import { createRandom, type Random } from './random.ts'
import { DISCLAIMER, simulatedReasoning, simulatedSentences } from './simulated-text.ts'
import { topicsOf } from './terms.ts'
import { splitTokens } from './tokens.ts'
import type { ToneFormat } from './tone-code.ts'
import { type PlannedCall, planToolCalls, schemaError } from './tool-calls.ts'

type ToolCallPieces = { id: string; name: string; pieces: string[] }

export type ChoiceAnswer = {
  reasoning: string[]
  content: string[]
  annotations: Annotation[]
  calls: ToolCallPieces[]
  finish_reason: FinishReason
  /** How it is spoken; undefined: it is text. */
  audio?: { id: string; format: ToneFormat }
}

type AnswerParts = { request: ChatRequest; prompt: Prompt; manual: () => Promise<Manual> }

const MAX_TOPICS = 12
/** In characters: a passage is a few sentences, not a page. */
const MAX_PASSAGE = 700
/** How many characters of a tool's result are quoted. */
const MAX_QUOTE = 500
/** Sentences of reasoning for each effort. */
const EFFORTS = { minimal: 1, low: 2, medium: 3, high: 4, xhigh: 5, max: 6 }

/** One choice of the answer; `index` makes it differ from the others. Throws `upstream_invalid_request`. */
export async function answerChoice(index: number, parts: AnswerParts): Promise<ChoiceAnswer> {
  const { request, prompt } = parts
  const { directives } = prompt
  const random = createRandom(`${index}:${prompt.seed}`)
  const reasoning = reasoningFor(parts, createRandom(`reasoning:${index}:${prompt.seed}`))
  const calls = planToolCalls(request, prompt, { random, index })
  const budget = request.max_completion_tokens ?? request.max_tokens ?? Number.POSITIVE_INFINITY
  if (calls.length > 0) return withinBudget({ reasoning, calls, text: '', annotations: [] }, request, budget)
  const structured = structuredAnswer(request, prompt, { random, index })
  if (structured !== undefined) {
    return withinBudget({ reasoning, calls, text: structured, annotations: [] }, request, budget)
  }
  const { text, annotations } = await textAnswer(index, random, parts)
  if (directives.tokens === undefined) return withinBudget({ reasoning, calls, text, annotations }, request, budget)
  // Of an exact length, reasoning is at most half; the rest is text, extended where it is too short.
  const thoughts = reasoning.slice(0, Math.floor(directives.tokens / 2))
  const length = directives.tokens - thoughts.length
  const content = withExactLength(text, length, { random, topics: topicsOf(prompt.question, MAX_TOPICS) })
  return withinBudget({ reasoning: thoughts, calls, text: content, annotations }, request, budget)
}

/** The first `length` tokens of the text; simulated sentences extend a text that has fewer. */
function withExactLength(whole: string, length: number, parts: { random: Random; topics: string[] }): string {
  // White space at the end would form one token with the blank before the next sentence.
  const text = whole.trimEnd()
  const pieces = splitTokens(text, length)
  if (pieces.length === length) return pieces.join('')
  const more = simulatedSentences(parts, length - pieces.length)
  return splitTokens(`${text} ${more}`, length).join('')
}

function reasoningFor({ request, prompt }: AnswerParts, random: Random): string[] {
  const effort = request.reasoning_effort
  const isRequested = request.thinking_enabled === true || (effort !== undefined && effort !== 'none')
  if (!isRequested) return []
  const sentences = EFFORTS[effort === undefined || effort === 'none' ? 'medium' : effort]
  return splitTokens(simulatedReasoning({ random, topics: topicsOf(prompt.question, MAX_TOPICS) }, sentences))
}

function structuredAnswer(
  { response_format: format }: ChatRequest,
  prompt: Prompt,
  { random, index }: { random: Random; index: number },
): string | undefined {
  if (!format || format.type === 'text') return undefined
  const topics = topicsOf(prompt.question, MAX_TOPICS)
  const schema = format.type === 'json_schema' ? format.json_schema.schema : undefined
  if (schema === undefined) {
    const text = simulatedSentences({ random, topics }, 20)
    return JSON.stringify({ simulated: true, notice: DISCLAIMER, choice: index, topics, text })
  }
  const sample = sampleFromSchema(schema, random, hintsOf(prompt.question, index))
  if ('problem' in sample) throw schemaError(sample.problem, 'response_format.json_schema.schema')
  return JSON.stringify(sample.value)
}

const MAX_SHOWN = 10

type Draft = { text: string; annotations: Annotation[] }

async function textAnswer(index: number, random: Random, parts: AnswerParts): Promise<Draft> {
  const { request, prompt } = parts
  const sourceCount = requestedSources(request)
  const paragraphs = [await openingFor(index, random, parts)]
  const sent = [...prompt.images.slice(0, MAX_SHOWN).map(describeImage), ...prompt.files]
  const count = prompt.images.length + prompt.files.length
  if (count > 0) {
    const shown = sent.slice(0, MAX_SHOWN).join(', ')
    const more = count > MAX_SHOWN ? `, and ${count - MAX_SHOWN} more` : ''
    paragraphs.push(`With the question came ${shown}${more}.`)
  }
  const text = paragraphs.join('\n\n')
  if (sourceCount === 0) return { text, annotations: [] }
  return withCitations(text, { manual: await parts.manual(), question: prompt.question, count: sourceCount })
}

async function openingFor(index: number, random: Random, { prompt, manual }: AnswerParts): Promise<string> {
  const choiceLabel = index === 0 ? '' : ` Choice ${index + 1}.`
  if (prompt.results.length > 0) {
    const quotes = prompt.results
      .slice(-5)
      .map(({ name, text }) => `The tool "${name}" answered: ${text.slice(0, MAX_QUOTE)}`)
    return [`${DISCLAIMER}${choiceLabel}`, ...quotes].join('\n\n')
  }
  const topics = topicsOf(prompt.question, MAX_TOPICS)
  // The first choice quotes the best section, the second choice the next best, as long as the sections are good.
  const isAboutManual = prompt.images.length + prompt.files.length === 0
  const found = isAboutManual ? (await manual()).search(prompt.question, index + 1)[index] : undefined
  if (!found?.isGood) return `${DISCLAIMER}${choiceLabel} ${simulatedSentences({ random, topics })}`
  const { section } = found
  const passage = (await manual()).passage(section, prompt.question, MAX_PASSAGE)
  const source = `Source: the Gatehouse manual, page "${section.page}", section "${section.heading}".`
  return `The sandbox is a simulated vendor; this is quoted from the Gatehouse manual.${choiceLabel}\n\n${passage}\n\n${source}`
}

/** A text answer as it is spoken, no longer than the sandbox speaks. */
export function withAudio(choice: ChoiceAnswer, audio: NonNullable<ChoiceAnswer['audio']>): ChoiceAnswer {
  if (choice.calls.length > 0) return choice
  let left = MAX_AUDIO_CHARACTERS
  const end = choice.content.findIndex((piece) => {
    left -= piece.length
    return left < 0
  })
  return end === -1
    ? { ...choice, audio }
    : { ...choice, audio, content: choice.content.slice(0, end), finish_reason: 'length' }
}

type FullChoice = { reasoning: string[]; calls: PlannedCall[]; text: string; annotations: Annotation[] }

/** Cuts the text at a stop sequence, then everything at the token limit: reasoning counts first, then text, then calls. */
function withinBudget(full: FullChoice, request: ChatRequest, budget: number): ChoiceAnswer {
  const text = beforeStop(full.text, request.stop)
  let left = budget
  const takeTokens = (pieces: string[]) => {
    const accepted = pieces.length > left ? pieces.slice(0, left) : pieces
    left -= accepted.length
    return accepted
  }
  const pieces = splitTokens(text)
  const reasoning = takeTokens(full.reasoning)
  const content = takeTokens(pieces)
  let isCut = reasoning.length < full.reasoning.length || content.length < pieces.length
  const calls: ToolCallPieces[] = []
  for (const { id, name, arguments: text } of full.calls) {
    // The beginning of a call, with its name, is one token.
    if (isCut || takeTokens([name]).length === 0) {
      isCut = true
      break
    }
    const all = splitTokens(text)
    const accepted = takeTokens(all)
    isCut = accepted.length < all.length
    calls.push({ id, name, pieces: accepted })
  }
  const length = content.reduce((sum, piece) => sum + piece.length, 0)
  const annotations = full.annotations.filter(({ url_citation }) => url_citation.end_index <= length)
  const reason = full.calls.length > 0 ? 'tool_calls' : 'stop'
  return { reasoning, content, annotations, calls, finish_reason: isCut ? 'length' : reason }
}

/** The text before the first stop sequence in it. */
function beforeStop(text: string, stop: ChatRequest['stop']): string {
  const stops = (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((each) => each !== '')
  const positions = stops.map((each) => text.indexOf(each)).filter((at) => at !== -1)
  return positions.length ? text.slice(0, Math.min(...positions)) : text
}

/** The tokens of a choice: all pieces of reasoning, text and calls, and one for the beginning of each call. */
export function tokensOf(choice: ChoiceAnswer): { output: number; reasoning: number; audio: number } {
  const calls = choice.calls.reduce((sum, call) => sum + 1 + call.pieces.length, 0)
  const audio = choice.audio ? outputAudioTokens(choice.content.join('')) : 0
  const output = choice.reasoning.length + choice.content.length + calls + audio
  return { output, reasoning: choice.reasoning.length, audio }
}
