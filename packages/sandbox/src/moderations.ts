/**
 * The sandbox as a moderation provider. It simulates: it has OpenAI's categories, and each score depends only on how many of
 * a few listed words the input contains. It understands nothing and protects nobody.
 */
import type { ModerationProvider } from '../../../src/providers/provider.ts'
import type { ModerationInput, ModerationPart, ModerationResult } from '../../../src/spec/moderation-request.ts'
import { splitWords, stem } from './terms.ts'
import { applyDirectives, type SimulationParts } from './text-directives.ts'
import { countTokens, IMAGE_TOKENS } from './tokens.ts'

type Category = { terms: string; images?: true }

/** OpenAI's categories; those with `images` apply to images too. */
const CATEGORIES: Record<string, Category> = {
  harassment: { terms: 'idiot stupid loser moron pathetic' },
  'harassment/threatening': { terms: 'threat threaten hurt stalk' },
  hate: { terms: 'hate vermin subhuman' },
  'hate/threatening': { terms: 'exterminate eradicate' },
  illicit: { terms: 'shoplift counterfeit forge smuggle' },
  'illicit/violent': { terms: 'bomb explosive grenade' },
  'self-harm': { terms: 'suicide selfharm', images: true },
  'self-harm/intent': { terms: 'suicidal', images: true },
  'self-harm/instructions': { terms: 'overdose', images: true },
  sexual: { terms: 'nude porn erotic', images: true },
  'sexual/minors': { terms: '' },
  violence: { terms: 'kill murder attack stab shoot', images: true },
  'violence/graphic': { terms: 'gore blood behead', images: true },
}

const FLAGGED_FROM = 0.5
/** Each listed word multiplies the distance to 1 by this factor. */
const REMAINDER = 0.4
/** Never exactly 0, like the scores of real classifiers. */
const LOWEST = 0.0001

/** After so much text the event loop serves other requests: the work is done in the thread that serves them all. */
const CHARACTERS_PER_TURN = 100_000

const CATEGORY_OF = new Map(
  Object.entries(CATEGORIES).flatMap(([name, { terms }]) =>
    splitWords(terms).map((word) => [stem(word), name] as const),
  ),
)

export function createSandboxModerations(parts: SimulationParts): ModerationProvider {
  return {
    async moderate({ model, inputs }, signal) {
      const texts = inputs.map(textOf)
      const { rest, hasUsage } = await applyDirectives({ texts, param: 'input', model, signal }, parts)
      const results: ModerationResult[] = []
      let prompt_tokens = 0
      let since = 0
      for (const [index, input] of inputs.entries()) {
        const text = rest[index] ?? ''
        results.push(resultOf(text, imagesIn(input)))
        prompt_tokens += tokensOf(input)
        since += text.length
        if (since < CHARACTERS_PER_TURN) continue
        since = 0
        await new Promise((resolve) => setImmediate(resolve))
        signal.throwIfAborted()
      }
      return { results, ...(hasUsage ? { prompt_tokens } : {}) }
    },
  }
}

const imagesIn = (input: ModerationInput): Extract<ModerationPart, { type: 'image_url' }>[] =>
  typeof input === 'string' ? [] : input.filter((part) => part.type === 'image_url')

const textOf = (input: ModerationInput): string =>
  typeof input === 'string' ? input : input.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n')

const tokensOf = (input: ModerationInput): number => countTokens(textOf(input)) + imagesIn(input).length * IMAGE_TOKENS

/** The words of an image's URL stand for what it shows; a data URI has none. */
const termsOfImages = (images: ReturnType<typeof imagesIn>): string[] =>
  images.flatMap(({ image_url: { url } }) => (/^data:/i.test(url) ? [] : splitWords(new URL(url).pathname)))

/** The number of words of each category. */
function countsOf(terms: string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const word of terms) {
    const name = CATEGORY_OF.get(stem(word))
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return counts
}

function resultOf(text: string, images: ReturnType<typeof imagesIn>): ModerationResult {
  const inText = countsOf(splitWords(text))
  const inImages = countsOf(termsOfImages(images))
  const categories: Record<string, boolean> = {}
  const category_scores: Record<string, number> = {}
  const category_applied_input_types: Record<string, string[]> = {}
  for (const [name, { images: appliesToImages = false }] of Object.entries(CATEGORIES)) {
    const found = (inText.get(name) ?? 0) + (appliesToImages ? (inImages.get(name) ?? 0) : 0)
    const score = Math.max(LOWEST, 1 - REMAINDER ** found)
    category_scores[name] = score
    categories[name] = score >= FLAGGED_FROM
    const applied = [...(text === '' ? [] : ['text']), ...(appliesToImages && images.length > 0 ? ['image'] : [])]
    category_applied_input_types[name] = applied
  }
  return {
    flagged: Object.values(categories).includes(true),
    categories,
    category_scores,
    category_applied_input_types,
  }
}
