/** Generates text that is recognisably simulated: sentences from a small grammar about the topics of the prompt. */
import type { Random } from './random.ts'
import { countTokens } from './tokens.ts'

/** The beginning of every simulated answer, so that nobody mistakes it for the answer of a model. */
export const DISCLAIMER = 'This is simulated text from the Gatehouse sandbox, not the answer of a model.'

const SENTENCES = [
  'A real model would say more about {topic} here.',
  'Begin with {topic}, go on to {other}, and remember that the order {verb} too.',
  'Whoever looks at {topic} for the first time finds a {adjective} {noun}.',
  'Between {topic} and {other} there is a {adjective} {noun}, and it is worth a second look.',
  'In practice {topic} rarely {verb} alone: {other} is part of the {noun}.',
  'The {adjective} part of {topic} is its {noun}.',
  'Some would begin with {other}, but {topic} offers the {adjective} {noun}.',
  'Each {noun} of {topic} leads back to {other}.',
  'A {adjective} {noun} helps: it keeps {topic} apart from {other}.',
  'If {topic} changes, the {noun} of {other} changes with it.',
  'That leaves {topic}, for which a {adjective} {noun} is usually enough.',
  'So far the {noun} of {topic} looks {adjective}.',
  'It pays to write down the {noun} before {topic} meets {other}.',
  'With a little care, {other} becomes a {adjective} {noun} for {topic}.',
]
const ADJECTIVES = 'simple careful handy plain steady clear modest familiar patient practical quiet open'.split(' ')
const NOUNS = 'question pattern example boundary detail habit measure picture reason step outline balance'.split(' ')
const VERBS = ['matters', 'counts', 'helps']
/** Used as the second topic of a prompt with fewer than two topics. */
const OTHER_TOPICS = ['everything around it', 'what comes after it', 'the rest of it', 'all that it leads to']

const REASONING_SENTENCES = [
  'Simulated reasoning: the question is about {topic}.',
  'It also mentions {other}.',
  'One could begin with a {adjective} {noun} of {topic}.',
  'But {other} might need another {noun}.',
  'A {adjective} answer should name both and stay short.',
  'The sandbox does not know more about {topic}, and will say so.',
]

/** The default length of a simulated answer, in tokens: from the minimum to the minimum plus the spread, about a sentence more. */
const MIN_TOKENS = 65
const SPREAD = 60

type TextParts = { random: Random; topics: string[] }

function fill(sentence: string, { random, topics }: TextParts): string {
  const topic = topics.length ? random.pick(topics) : 'the subject'
  const rest = topics.filter((each) => each !== topic)
  const other = random.pick(rest.length ? rest : OTHER_TOPICS)
  const text = sentence
    .replaceAll('{topic}', () => topic)
    .replaceAll('{other}', () => other)
    .replace('{adjective}', () => random.pick(ADJECTIVES))
    .replace('{noun}', () => random.pick(NOUNS))
    .replace('{verb}', () => random.pick(VERBS))
    .replace(/\b([Aa]) (?=[aeiou])/g, '$1n ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}

/** Sentences of at least this many tokens, by default of the default length. */
export function simulatedSentences(parts: TextParts, tokens?: number): string {
  const minimum = tokens ?? MIN_TOKENS + parts.random.below(SPREAD) - countTokens(DISCLAIMER)
  const sentences: string[] = []
  let unused: string[] = []
  for (let count = 0; count < minimum; ) {
    // All sentences are used once before one is used again.
    if (unused.length === 0) unused = [...SENTENCES]
    const [next = ''] = unused.splice(parts.random.below(unused.length), 1)
    const sentence = fill(next, parts)
    sentences.push(sentence)
    // The space before a sentence belongs to the token of its first word, so counts of sentences can be added up.
    count += countTokens(` ${sentence}`)
  }
  return sentences.join(' ')
}

/** Simulated reasoning of this many sentences. */
export function simulatedReasoning(parts: TextParts, sentences: number): string {
  const [first = '', ...others] = REASONING_SENTENCES
  const lines = [first]
  for (let count = 1; count < sentences; count++) lines.push(others[(count - 1) % others.length] ?? '')
  return lines.map((line) => fill(line, parts)).join(' ')
}

/** Alternative tokens for `top_logprobs`. */
export const OTHER_TOKENS = [...ADJECTIVES, ...NOUNS, ...VERBS].map((word) => ` ${word}`)
